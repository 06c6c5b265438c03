"""The one catalogue: which groups exist, and which of their families are exported."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from exporter.core.snapshot import Snapshot
from exporter.metrics import (
    attribution,
    below_scrape,
    claim,
    context,
    cost,
    fabric,
    hardware,
    honest,
    host,
    jobstats,
    measurement,
    own,
    process,
    quality,
    single_processes,
    state,
)
from exporter.metrics.family import Family, Group, Profile, Sample

GROUPS: tuple[Group, ...] = (
    claim.GROUP,
    measurement.GROUP,
    honest.GROUP,
    hardware.GROUP,
    state.GROUP,
    below_scrape.GROUP,
    context.GROUP,
    fabric.GROUP,
    quality.GROUP,
    attribution.GROUP,
    single_processes.GROUP,
    host.GROUP,
)
# Series under other programs' names, each group by an option of its own; our rules of naming do not hold for them.
COMPATIBILITY: tuple[Group, ...] = (jobstats.GROUP,)


def groups(
    daemon: own.OwnState, prices: Sequence[cost.Price] = (), currency: str = "", compatibility: Sequence[Group] = ()
) -> tuple[Group, ...]:
    """All groups under our own names, the daemon's own after them; last those of COMPATIBILITY that are asked for."""
    ours = (*GROUPS, cost.cost_group(prices, currency), own.own_group(daemon), process.process_group())
    return (*ours, *compatibility)


@dataclass(frozen=True, slots=True)
class Selection:
    """Which families are exported: a profile, plus and minus globs over the names that queries use."""

    profile: Profile = Profile.DEFAULT
    include: Sequence[str] = ()
    exclude: Sequence[str] = ()

    def __contains__(self, family: Family) -> bool:
        name = family.series_name
        if any(fnmatchcase(name, glob) for glob in self.exclude):
            return False
        return family.profile <= self.profile or any(fnmatchcase(name, glob) for glob in self.include)


def samples(snapshot: Snapshot, selected: Iterable[Group], selection: Selection) -> dict[Family, list[Sample]]:
    """Samples by family, families in the catalogue's order, those without samples left out."""
    found: dict[Family, list[Sample]] = {}
    for group in selected:
        kept: dict[Family, list[Sample]] = {family: [] for family in group.families if family in selection}
        if not kept:
            continue
        for sample in group.collect(snapshot):
            bucket = kept.get(sample.family)
            if bucket is not None:
                bucket.append(sample)
        found.update((family, listed) for family, listed in kept.items() if listed)
    return found
