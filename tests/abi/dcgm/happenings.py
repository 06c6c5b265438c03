"""What goes wrong while a scenario is played: calls that fail, hang or take long, and values that are none or wrong."""

import enum
from dataclasses import dataclass

from ..player.faults import delaying, failing, hanging
from .codes import Blank, Code, EntityKind
from .values import ALWAYS, FOREVER, Window

__all__ = [
    "EVERY_FIELD",
    "PROFILING",
    "Cure",
    "Lock",
    "ValueFault",
    "ValueFaultKind",
    "blanking",
    "delaying",
    "failing",
    "failing_rows",
    "freezing",
    "hanging",
    "losing",
    "silencing",
    "sticking",
]


class ValueFaultKind(enum.IntEnum):
    BLANK = 0
    STUCK = 1
    FROZEN = 2
    SILENT = 3
    STATUS = 4
    LOST = 5


class Cure(enum.IntFlag):
    """What ends a fault before its window does."""

    NONE = 0
    WATCH = 1
    """A new watch of the field, where nobody watched it any more."""
    RESUME = 2
    """Resuming profiling."""


PROFILING = (1001, 1096)
EVERY_FIELD = (0, 65535)


@dataclass(frozen=True)
class ValueFault:
    """Happens to samples taken within the window; of several the first one in the scenario counts."""

    kind: ValueFaultKind
    argument: float = 0.0
    fields: tuple[int, int] = EVERY_FIELD
    """First and last."""
    gpu: int | None = None
    """None: any; else the GPU and its instances."""
    entity: tuple[EntityKind, int] | None = None
    window: Window = ALWAYS
    cure: Cure = Cure.NONE


def _of(fields: int | tuple[int, int]) -> tuple[int, int]:
    return (fields, fields) if isinstance(fields, int) else fields


def blanking(
    fields: int | tuple[int, int],
    start: float = 0.0,
    end: float = FOREVER,
    *,
    kind: Blank = Blank.UNSET,
    gpu: int | None = None,
    entity: tuple[EntityKind, int] | None = None,
    cure: Cure = Cure.NONE,
) -> ValueFault:
    """Samples are blank; of a text, too."""
    return ValueFault(ValueFaultKind.BLANK, kind, _of(fields), gpu, entity, Window(start, end), cure)


def sticking(
    fields: int | tuple[int, int],
    value: float,
    start: float = 0.0,
    end: float = FOREVER,
    *,
    gpu: int | None = None,
    entity: tuple[EntityKind, int] | None = None,
    cure: Cure = Cure.NONE,
) -> ValueFault:
    """Samples go on, all of one value: 0.0 for profiling stuck at zero."""
    return ValueFault(ValueFaultKind.STUCK, value, _of(fields), gpu, entity, Window(start, end), cure)


def freezing(
    fields: int | tuple[int, int],
    start: float = 0.0,
    end: float = FOREVER,
    *,
    gpu: int | None = None,
    entity: tuple[EntityKind, int] | None = None,
    cure: Cure = Cure.NONE,
) -> ValueFault:
    """Samples go on, each with the value that the fault began with."""
    return ValueFault(ValueFaultKind.FROZEN, 0.0, _of(fields), gpu, entity, Window(start, end), cure)


def silencing(
    fields: int | tuple[int, int],
    start: float = 0.0,
    end: float = FOREVER,
    *,
    gpu: int | None = None,
    entity: tuple[EntityKind, int] | None = None,
    cure: Cure = Cure.NONE,
) -> ValueFault:
    """No new samples: rows without data."""
    return ValueFault(ValueFaultKind.SILENT, 0.0, _of(fields), gpu, entity, Window(start, end), cure)


def failing_rows(
    fields: int | tuple[int, int],
    code: Code,
    start: float = 0.0,
    end: float = FOREVER,
    *,
    gpu: int | None = None,
    entity: tuple[EntityKind, int] | None = None,
    cure: Cure = Cure.NONE,
) -> ValueFault:
    """No new samples: rows with a code as their status."""
    return ValueFault(ValueFaultKind.STATUS, code, _of(fields), gpu, entity, Window(start, end), cure)


def losing(gpu: int, start: float = 0.0, end: float = FOREVER) -> ValueFault:
    """Fallen off the bus: still listed, attributes and samples blank, and no group takes it."""
    return ValueFault(ValueFaultKind.LOST, 0.0, EVERY_FIELD, gpu, None, Window(start, end))


@dataclass(frozen=True)
class Lock:
    """Another client holds the profiling hardware: new watches through the module are refused."""

    window: Window = ALWAYS
    code: Code = Code.PROFILING_LIBRARY_ERROR
