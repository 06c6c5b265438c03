"""What the processes on each device used, as counters that outlive each process."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from exporter.host.reading import HolderReading
from exporter.model import Entity


@dataclass(slots=True)
class DeviceUse:
    """Since the exporter began; of all processes that held the device, and those below them. None: not known."""

    cpu_seconds: float = 0.0
    main_thread_cpu_seconds: float | None = None  # of the holders' main threads
    read_bytes: float | None = None  # from storage
    written_bytes: float | None = None
    block_seconds: float | None = None
    holders: int = 0  # now
    loaders: int = 0  # now
    runnable_threads: int = 0  # now
    blocked_threads: int = 0  # now


@dataclass(slots=True)
class HostAccount:
    """Adds up differences between passes. A process on several devices counts on each of them."""

    devices: dict[Entity, DeviceUse] = field(default_factory=dict)
    _before: dict[tuple[int, float], HolderReading] = field(default_factory=dict)  # (pid, start) -> last reading

    def feed(self, holders: Mapping[int, HolderReading], held: Iterable[tuple[Entity, int]]) -> None:
        """One pass. ``held``: which process is on which device, now."""
        pairs = list(held)
        for use in self.devices.values():
            use.holders = use.loaders = use.runnable_threads = use.blocked_threads = 0
        for entity, pid in pairs:
            if (holder := holders.get(pid)) is None:
                continue
            use = self.devices.setdefault(entity, DeviceUse())
            use.holders += 1
            use.loaders += holder.loaders
            use.runnable_threads += holder.runnable_threads
            use.blocked_threads += holder.blocked_threads
            before = self._before.get((pid, holder.started))
            if before is not None:
                _add(use, before, holder)
        self._before = {(pid, holder.started): holder for pid, holder in holders.items()}

    def keep(self, entities: frozenset[Entity]) -> None:
        """Forget devices that are gone."""
        for gone in self.devices.keys() - entities:
            del self.devices[gone]


def _add(use: DeviceUse, before: HolderReading, now: HolderReading) -> None:
    use.cpu_seconds += max(0.0, now.cpu_seconds - before.cpu_seconds)
    use.cpu_seconds += max(0.0, now.children_cpu_seconds - before.children_cpu_seconds)
    for name in ("main_thread_cpu_seconds", "read_bytes", "written_bytes", "block_seconds"):
        then, value = getattr(before, name), getattr(now, name)
        if then is not None and value is not None:
            setattr(use, name, (getattr(use, name) or 0.0) + max(0.0, value - then))
