"""What a Snapshot holds of attribution."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from exporter.attribution.background import SourceHealth
from exporter.attribution.holdings import Holding, Workload
from exporter.attribution.process_list import ProcessList
from exporter.model import Entity


@dataclass(frozen=True, slots=True)
class WorkloadView:
    """One workload: GPU-seconds by part, and what it holds now."""

    workload: Workload
    parts: Mapping[str, float]
    memory_bytes: float | None = None
    processes: int | None = None


@dataclass(frozen=True, slots=True)
class AttributionView:
    """Who holds what, and what they used."""

    sources: Sequence[SourceHealth] = ()
    holdings: Sequence[Holding] = ()
    workloads: Sequence[WorkloadView] = ()
    unattributed: Mapping[Entity, Mapping[str, float]] = field(default_factory=dict)
    helpers: Sequence[SourceHealth] = ()  # what adds to the sources' word; without it holders are still known
    allocatable: frozenset[Entity] | None = None  # what may be handed out at all; None: no source tells
    processes: ProcessList | None = None  # None: nobody asked for single processes

    def allocated(self, entity: Entity) -> bool | None:
        """Whether somebody holds it. None: nobody is known to, but not every source can tell now."""
        if any(holding.entity == entity for holding in self.holdings):
            return True
        return False if self.sources and all(source.up and source.all_told for source in self.sources) else None
