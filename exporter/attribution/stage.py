"""Joins what the attribution sources say with the devices' time, once a sampling window."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from exporter.attribution.accounting import Accounting, Parts
from exporter.attribution.background import AttributionBackground, SourceHealth
from exporter.attribution.holdings import DriverProcesses, Holding, Workload
from exporter.attribution.view import AttributionView, ProcessList, ProcessView, WorkloadView
from exporter.model import Device, Entity, ProcessUse

Owner = Callable[[int, Sequence[Workload]], "Workload | None"]


def _nobody(pid: int, holders: Sequence[Workload]) -> Workload | None:
    """Without a look at processes, those of a device's only holder are its own."""
    return holders[0] if len(holders) == 1 else None


class Helper(Protocol):
    """What adds to the sources' word in threads of its own."""

    def start(self) -> None:
        """Begin."""

    def stop(self, timeout: float) -> None:
        """End; what hangs is left behind."""

    @property
    def health(self) -> Sequence[SourceHealth]:
        """Of all that it reads."""


@dataclass(frozen=True, slots=True)
class Listing:
    """Single processes are wanted: where their names are from, and how many a device at most."""

    command: Callable[[int], str]
    most: int


@dataclass(slots=True)
class _Use:
    """What the processes of one workload use of one device; None: the driver does not tell."""

    processes: int = 0
    memory: float | None = None
    sm: float | None = None


class AttributionStage:
    """Fed in the sampler's thread; the sources are read in theirs. Earlier sources go before later ones, per device."""

    def __init__(
        self,
        sources: Sequence[AttributionBackground],
        accounting: Accounting,
        owner: Owner = _nobody,
        helpers: Sequence[Helper] = (),
        listing: Listing | None = None,
        driver: DriverProcesses | None = None,
    ) -> None:
        """``owner``: the workload that a process belongs to, among those that hold its device; None: not known.

        ``driver``: where the processes of each window are left for a source that looks them up.
        """
        self._sources = sources
        self._helpers = helpers
        self._listing = listing
        self._accounting = accounting
        self._owner = owner
        self._driver = driver or DriverProcesses()

    def start(self) -> None:
        running: tuple[Helper | AttributionBackground, ...] = (*self._helpers, *self._sources)
        for each in running:
            each.start()

    def stop(self, timeout: float) -> None:
        running: tuple[Helper | AttributionBackground, ...] = (*self._sources, *self._helpers)
        for each in running:
            each.stop(timeout / max(1, len(running)))

    def update(
        self,
        now: float,
        devices: Mapping[Entity, tuple[Device, Parts]],
        processes: Sequence[ProcessUse] | None,
    ) -> AttributionView:
        """One window. ``devices``: those present, with their cumulative seconds by part."""
        self._driver.latest = [(process.entity, process.pid) for process in processes or ()]
        listed = [device for device, _ in devices.values()]
        holdings: dict[Entity, list[Holding]] = {}
        for source in self._sources:
            source.devices(listed)
            found: dict[Entity, list[Holding]] = {}
            for holding in source.holdings:
                if holding.entity in devices:
                    found.setdefault(holding.entity, []).append(holding)
            for entity, held in found.items():
                holdings.setdefault(entity, held)
        flat = [holding for held in holdings.values() for holding in held]
        used = self._by_workload(holdings, processes or ())
        shares = {
            entity: {who: use.sm for who, use in each.items() if use.sm is not None} for entity, each in used.items()
        }
        self._accounting.book(now, {entity: parts for entity, (_, parts) in devices.items()}, flat, shares)
        memory, count = _over_devices(used)
        return AttributionView(
            sources=tuple(source.health for source in self._sources),
            holdings=tuple(sorted(flat, key=lambda holding: (str(holding.entity), holding.workload))),
            workloads=tuple(
                WorkloadView(workload, dict(totals.parts), memory.get(workload), count.get(workload))
                for workload, totals in sorted(self._accounting.workloads.items())
            ),
            unattributed={entity: dict(parts) for entity, parts in self._accounting.unattributed.items()},
            helpers=tuple(health for helper in self._helpers for health in helper.health),
            allocatable=next((s.allocatable for s in self._sources if s.allocatable is not None), None),
            processes=self._list(devices, processes),
        )

    def _list(self, devices: Mapping[Entity, object], processes: Sequence[ProcessUse] | None) -> ProcessList | None:
        if self._listing is None or processes is None:
            return None
        present = [process for process in processes if process.entity in devices]
        return list_processes(present, self._listing.command, self._listing.most)

    def _by_workload(
        self, holdings: Mapping[Entity, Sequence[Holding]], processes: Sequence[ProcessUse]
    ) -> dict[Entity, dict[Workload, _Use]]:
        used: dict[Entity, dict[Workload, _Use]] = {}
        for process in processes:
            holders = [holding.workload for holding in holdings.get(process.entity, ())]
            owner = self._owner(process.pid, list(dict.fromkeys(holders)))
            if owner is None:
                continue
            use = used.setdefault(process.entity, {}).setdefault(owner, _Use())
            use.processes += 1
            if process.memory_bytes is not None:
                use.memory = (use.memory or 0.0) + process.memory_bytes
            if process.sm is not None:
                use.sm = min(1.0, (use.sm or 0.0) + process.sm)
        return used


def _over_devices(used: Mapping[Entity, Mapping[Workload, _Use]]) -> tuple[dict[Workload, float], dict[Workload, int]]:
    """Memory and number of processes, over all devices that a workload holds."""
    memory: dict[Workload, float] = {}
    count: dict[Workload, int] = {}
    for each in used.values():
        for workload, use in each.items():
            count[workload] = count.get(workload, 0) + use.processes
            if use.memory is not None:
                memory[workload] = memory.get(workload, 0.0) + use.memory
    return memory, count


def list_processes(processes: Sequence[ProcessUse], command: Callable[[int], str], most: int) -> ProcessList:
    """Those that are shown: ``most`` of each device, the lowest process ids first.

    Which ones must not depend on what they use, or series would come and go from scrape to scrape.
    """
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
