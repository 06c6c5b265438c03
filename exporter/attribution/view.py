"""What a Snapshot holds of attribution."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from exporter.attribution.background import SourceHealth
from exporter.attribution.holdings import Holding, Workload
from exporter.model import Entity


@dataclass(frozen=True, slots=True)
class WorkloadView:
    """One workload: GPU-seconds by part, and what it holds now."""

    workload: Workload
    parts: Mapping[str, float]
    memory_bytes: float | None = None
    processes: int | None = None


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
