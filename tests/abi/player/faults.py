"""What goes wrong in calls while a scenario is played: they fail, hang or take long."""

import enum
from dataclasses import dataclass

from .values import ALWAYS, FOREVER, Window


class CallFaultKind(enum.IntEnum):
    ERROR = 0
    HANG = 1
    DELAY = 2


@dataclass(frozen=True)
class CallFault:
    """Happens in calls of functions whose name matches a glob; NVML's single values are named gpm.ID and field.ID."""

    function: str
    kind: CallFaultKind
    argument: float = 0.0
    gpu: int | str | None = None
    """Only in calls about this GPU: its id (DCGM) or its key (NVML). None: about any, and about none."""
    instance: int | None = None
    """Only in calls about this GPU instance (NVML)."""
    window: Window = ALWAYS
    limit: int = 0
    """How many calls at most; 0: all."""


def failing(
    function: str,
    code: int,
    start: float = 0.0,
    end: float = FOREVER,
    *,
    gpu: int | str | None = None,
    instance: int | None = None,
    limit: int = 0,
) -> CallFault:
    """Calls return the code."""
    return CallFault(function, CallFaultKind.ERROR, code, gpu, instance, Window(start, end), limit)


def hanging(
    function: str,
    start: float = 0.0,
    end: float = FOREVER,
    *,
    gpu: int | str | None = None,
    instance: int | None = None,
    limit: int = 0,
) -> CallFault:
    """Calls do not return before the end, in scenario time; then they go on as if nothing had been."""
    return CallFault(function, CallFaultKind.HANG, 0.0, gpu, instance, Window(start, end), limit)


def delaying(
    function: str,
    seconds: float,
    start: float = 0.0,
    end: float = FOREVER,
    *,
    gpu: int | str | None = None,
    limit: int = 0,
) -> CallFault:
    """Calls take longer, in real time."""
    return CallFault(function, CallFaultKind.DELAY, seconds, gpu, None, Window(start, end), limit)
