"""Single processes, for whoever asks for them by a switch: a bounded number a device, the lowest process ids first.

Which ones are shown must not hang on what they use, or series would come and go from scrape to scrape.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from exporter.model import Entity, ProcessUse


@dataclass(frozen=True, slots=True)
class ProcessView:
    """One process on one device; None: the driver does not tell."""

    entity: Entity
    pid: int
    command: str  # empty: not known
    memory_bytes: float | None = None
    sm: float | None = None  # share of the time since the last read for which it had SMs in use, 0..1


@dataclass(frozen=True, slots=True)
class ProcessList:
    """Those that are shown, and how many of each device are not."""

    shown: Sequence[ProcessView] = ()
    left_off: Mapping[Entity, int] = field(default_factory=dict)  # every device that has processes


def list_processes(processes: Sequence[ProcessUse], command: Callable[[int], str], most: int) -> ProcessList:
    """``most``: of one device."""
    by_device: dict[Entity, list[ProcessUse]] = {}
    for process in sorted(processes, key=lambda each: (str(each.entity), each.pid)):
        by_device.setdefault(process.entity, []).append(process)
    return ProcessList(
        tuple(
            ProcessView(each.entity, each.pid, command(each.pid), each.memory_bytes, each.sm)
            for listed in by_device.values()
            for each in listed[:most]
        ),
        {entity: max(0, len(listed) - most) for entity, listed in by_device.items()},
    )
