"""What processes used, as counters that never fall: for each device, and for each tree of processes."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

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


Member = TypeVar("Member", bound=Hashable)  # a process; its pid alone may be given to another one later


class Amounts(NamedTuple):
    """What one process did since it began, or several together. Seconds and bytes."""

    cpu: float = 0.0
    block: float = 0.0
    requested: int = 0
    read: int = 0
    written: int = 0

    def plus(self, other: Amounts) -> Amounts:
        """The sums."""
        return Amounts(
            self.cpu + other.cpu,
            self.block + other.block,
            self.requested + other.requested,
            self.read + other.read,
            self.written + other.written,
        )

    def since(self, before: Amounts) -> Amounts:
        """The growth. A counter that fell, which none should, counts as not grown."""
        return Amounts(
            max(0.0, self.cpu - before.cpu),
            max(0.0, self.block - before.block),
            max(0, self.requested - before.requested),
            max(0, self.read - before.read),
            max(0, self.written - before.written),
        )


class Totals(Generic[Member]):
    """What all members did while they were watched."""

    def __init__(self) -> None:
        self._last: dict[Member, Amounts] = {}
        self.total = Amounts()

    def feed(self, members: Mapping[Member, Amounts], new: Collection[Member]) -> Amounts:
        """One pass over the live members. ``new``: those that began since the last pass, counted from 0.

        A member seen for the first time that is not new was there before: only what it does from now on counts.
        """
        for member, amounts in members.items():
            before = self._last.get(member, Amounts() if member in new else amounts)
            self.total = self.total.plus(amounts.since(before))
        self._last = dict(members)
        return self.total
