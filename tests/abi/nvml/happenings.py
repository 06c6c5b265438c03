"""What happens while a scenario is played: calls that fail, hang or take long, and events."""

import enum
import math
from dataclasses import dataclass

from tests.abi.nvml.codes import Code, EventType

NO_INSTANCE = 0xFFFFFFFF
FOREVER = math.inf


class FaultKind(enum.Enum):
    ERROR = "error"
    HANG = "hang"
    DELAY = "delay"


@dataclass(frozen=True)
class Fault:
    """Happens in calls of functions that match a glob, also ``gpm.ID`` and ``field.ID`` for single values."""

    function: str
    kind: FaultKind
    argument: float = 0.0
    gpu: str | None = None
    """Its key; None: any GPU, and calls about none."""
    instance: int | None = None
    """A GPU instance id; None: any, and none."""
    start: float = 0.0
    end: float = FOREVER
    limit: int = 0
    """How many calls at most; 0: all."""


def failing(
    function: str,
    code: Code,
    *,
    gpu: str | None = None,
    instance: int | None = None,
    start: float = 0.0,
    end: float = FOREVER,
    limit: int = 0,
) -> Fault:
    """Calls return the code."""
    return Fault(function, FaultKind.ERROR, float(code), gpu, instance, start, end, limit)


def hanging(
    function: str,
    *,
    gpu: str | None = None,
    instance: int | None = None,
    start: float = 0.0,
    end: float = FOREVER,
    limit: int = 0,
) -> Fault:
    """Calls do not return before the end, in scenario time; then they go on as if nothing had been."""
    return Fault(function, FaultKind.HANG, 0.0, gpu, instance, start, end, limit)


def delaying(
    function: str,
    seconds: float,
    *,
    gpu: str | None = None,
    start: float = 0.0,
    end: float = FOREVER,
    limit: int = 0,
) -> Fault:
    """Calls take longer, in real time."""
    return Fault(function, FaultKind.DELAY, seconds, gpu, None, start, end, limit)


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
