"""Joins what the attribution sources say with the devices' time, once a sampling window."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from exporter.attribution.accounting import Accounting, Parts, Shares
from exporter.attribution.background import Background
from exporter.attribution.holdings import Holding, Workload
from exporter.attribution.view import AttributionView, WorkloadView
from exporter.model import Device, Entity


class AttributionStage:
    """Fed in the sampler's thread; the sources are read in theirs. Earlier sources go before later ones, per device."""

    def __init__(self, sources: Sequence[Background], accounting: Accounting) -> None:
        self._sources = sources
        self._accounting = accounting

    def start(self) -> None:
        for source in self._sources:
            source.start()

    def stop(self, timeout: float) -> None:
        for source in self._sources:
            source.stop(timeout / max(1, len(self._sources)))

    def update(
        self,
        now: float,
        devices: Mapping[Entity, tuple[Device, Parts]],
        shares: Mapping[Entity, Shares],
        memory: Mapping[Workload, float],
        processes: Mapping[Workload, int],
    ) -> AttributionView:
        """One window. ``devices``: those present, with their cumulative seconds by part."""
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
        self._accounting.book(now, {entity: parts for entity, (_, parts) in devices.items()}, flat, shares)
        return AttributionView(
            sources=tuple(source.health for source in self._sources),
            holdings=tuple(sorted(flat, key=lambda holding: (str(holding.entity), holding.workload))),
            workloads=tuple(
                WorkloadView(workload, dict(totals.parts), memory.get(workload), processes.get(workload))
                for workload, totals in sorted(self._accounting.workloads.items())
            ),
            unattributed={entity: dict(parts) for entity, parts in self._accounting.unattributed.items()},
        )
