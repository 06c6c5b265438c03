"""What happens while a scenario is played: calls that fail, hang or take long, and events."""

from dataclasses import dataclass

from ..player.faults import delaying, failing, hanging
from .codes import EventType

__all__ = ["NO_INSTANCE", "Event", "delaying", "failing", "hanging", "xid"]

NO_INSTANCE = 0xFFFFFFFF


@dataclass(frozen=True)
class Event:
    time: float
    gpu: str
    type: EventType
    data: int = 0
    instance: int = NO_INSTANCE
    compute: int = NO_INSTANCE


def xid(time: float, gpu: str, code: int, *, instance: int = NO_INSTANCE, compute: int = NO_INSTANCE) -> Event:
    return Event(time, gpu, EventType.XID, code, instance, compute)
