"""GPU-seconds by workload: splits each device's time among its holders. Pure bookkeeping, no I/O.

An exclusive holder takes all of its device's time. Holders that share a device take what the driver's per-process
samples give them; what cannot be split stays unattributed. Holders and unattributed equal the device, part by part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from exporter.attribution.holdings import Holding, Workload
from exporter.model import Entity

KEEP = 300.0  # seconds for which a workload's counters outlive it, so that a last scrape sees them
MOST_WORKLOADS = 2000  # counters kept at once; the longest ended go first
ACTIVE_PARTS = frozenset({"working", "stalled", "hollow", "unexplained"})

Parts = Mapping[str, float]
Shares = Mapping[Workload, float]  # share of the interval for which the workload's processes had SMs in use, 0..1


@dataclass(slots=True)
class WorkloadTotals:
    """What one workload used, in GPU-seconds by part, over all its devices."""

    parts: dict[str, float] = field(default_factory=dict)
    last_held: float = 0.0


class Accounting:
    """Fed once a sampling window with every device's totals."""

    def __init__(self, keep: float = KEEP, most: int = MOST_WORKLOADS) -> None:
        self._keep = keep
        self._most = most
        self._before: dict[Entity, dict[str, float]] = {}
        self.workloads: dict[Workload, WorkloadTotals] = {}
        self.unattributed: dict[Entity, dict[str, float]] = {}

    def book(
        self,
        now: float,
        devices: Mapping[Entity, Parts],
        holdings: Sequence[Holding],
        shares: Mapping[Entity, Shares],
    ) -> None:
        """``devices``: cumulative seconds by part. ``shares``: over the same window, for entities that have samples."""
        holders: dict[Entity, list[Workload]] = {}
        for holding in holdings:
            listed = holders.setdefault(holding.entity, [])
            if holding.workload not in listed:
                listed.append(holding.workload)
            totals = self.workloads.setdefault(holding.workload, WorkloadTotals())
            totals.last_held = now
        for entity, parts in devices.items():
            grown = self._growth(entity, parts)
            self._split(entity, grown, holders.get(entity, []), shares.get(entity, {}))
        for gone in self._before.keys() - devices.keys():
            del self._before[gone]
            self.unattributed.pop(gone, None)
        self._forget(now)

    def _growth(self, entity: Entity, parts: Parts) -> dict[str, float]:
        """Seconds since the last window, by part."""
        before = self._before.get(entity, {})
        self._before[entity] = dict(parts)
        if any(parts.get(part, 0.0) < seconds for part, seconds in before.items()):
            before = {}  # it was forgotten and came back: its counters began anew
            self.unattributed.pop(entity, None)
        return {part: seconds - before.get(part, 0.0) for part, seconds in parts.items()}

    def _split(self, entity: Entity, grown: Parts, holders: Sequence[Workload], shares: Shares) -> None:
        rest = self.unattributed.setdefault(entity, {})
        fractions = _fractions(grown, holders, shares)
        for part, seconds in grown.items():
            left = seconds
            for holder, fraction in fractions.items():
                taken = seconds * fraction if part in ACTIVE_PARTS or len(holders) == 1 else 0.0
                parts = self.workloads[holder].parts
                parts[part] = parts.get(part, 0.0) + taken
                left -= taken
            rest[part] = rest.get(part, 0.0) + max(left, 0.0)

    def _forget(self, now: float) -> None:
        ended = sorted(
            (totals.last_held, workload) for workload, totals in self.workloads.items() if totals.last_held < now
        )
        over = len(self.workloads) - self._most
        for number, (last_held, workload) in enumerate(ended):
            if number < over or now - last_held > self._keep:
                del self.workloads[workload]


def _fractions(grown: Parts, holders: Sequence[Workload], shares: Shares) -> dict[Workload, float]:
    """Of the device's active time, each holder's fraction; they sum to 1 at most."""
    if len(holders) == 1:
        return {holders[0]: 1.0}
    total = sum(grown.values())
    if total <= 0:
        return {}
    active = sum(seconds for part, seconds in grown.items() if part in ACTIVE_PARTS) / total
    used = {holder: shares[holder] for holder in holders if holder in shares}
    whole = max(sum(used.values()), active)
    return {holder: share / whole for holder, share in used.items()} if whole > 0 else {}
