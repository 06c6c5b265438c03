"""The fabric of the node: NVLink links, NVSwitches and Grace CPUs, with counters.

Read less often than the GPUs, and by one source at a time. Counters outlive the source's failures.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from exporter.fields import PART_FIELDS, Kind
from exporter.model import Absence, Entity, Fabric, LinkState, Part, PartReading
from exporter.trust import range_fault, rounded

MISSED_READS = 3  # reads that may be missed before the last one is no longer current


@dataclass(frozen=True, slots=True)
class PartView:
    """One part; keys are (field, label)."""

    kind: str
    number: int
    links: Mapping[str, int]  # links by state; empty where nothing is known of them
    current: Mapping[tuple[str, str], float]  # instants and means of the last read; empty when it is too old
    seconds: Mapping[str, float]  # integral of ratios
    observed: Mapping[str, float]  # and the seconds that they cover
    events: Mapping[tuple[str, str], int]


@dataclass(frozen=True, slots=True)
class FabricView:
    """The fabric at one moment."""

    parts: tuple[PartView, ...] = ()
    links: Mapping[Entity, Mapping[int, str]] = field(default_factory=dict)  # of GPUs: state by the link's number


@dataclass(slots=True)
class _Totals:
    seconds: dict[str, float] = field(default_factory=dict)
    observed: dict[str, float] = field(default_factory=dict)
    events: dict[tuple[str, str], int] = field(default_factory=dict)
    until: dict[str, float] = field(default_factory=dict)  # field -> end of what is booked


class FabricAccount:
    """Not thread safe: only the pipeline's thread uses it."""

    def __init__(self) -> None:
        self._last: dict[str, Fabric] = {}  # by source
        self._totals: dict[Part, _Totals] = {}

    def absorb(self, source: str, read: Fabric) -> Counter[tuple[str, str]]:
        """Take in one read. Returns the values that were refused, by field and reason."""
        checked = [(reading, _checked(reading)) for reading in read.readings]
        valid = [reading for _, reading in checked if reading is not None]
        for reading in valid:
            _book(self._totals.setdefault(reading.part, _Totals()), reading)
        self._last[source] = replace(read, readings=valid)
        return Counter((raw.field, Absence.OUT_OF_RANGE.value) for raw, reading in checked if reading is None)

    def failed(self, source: str) -> None:
        """Its last read is no longer current."""
        self._last.pop(source, None)

    def view(self, now: float) -> FabricView:
        """What is current, and everything that was counted."""
        reads = [read for read in self._last.values() if now - read.end <= MISSED_READS * read.lasts]
        current: dict[Part, dict[tuple[str, str], float]] = {part: {} for part in self._totals}
        current |= {part: {} for read in reads for part in read.parts}
        for reading in (reading for read in reads for reading in read.readings):
            if PART_FIELDS[reading.field].kind is not Kind.EVENT:
                current.setdefault(reading.part, {})[reading.field, reading.label] = reading.value
        states = {owner: links for read in reads for owner, links in read.links.items()}
        parts = sorted(current.keys() | {owner for owner in states if isinstance(owner, Part)}, key=_order)
        return FabricView(
            tuple(self._part(part, current.get(part, {}), states.get(part, {})) for part in parts),
            {
                owner: {link: state.value for link, state in links.items()}
                for owner, links in states.items()
                if isinstance(owner, Entity)
            },
        )

    def _part(self, part: Part, current: Mapping[tuple[str, str], float], states: Mapping[int, LinkState]) -> PartView:
        totals = self._totals.get(part) or _Totals()
        counts = Counter(state.value for state in states.values())
        return PartView(
            part.kind.value,
            part.number,
            {state.value: counts[state.value] for state in LinkState} if states else {},
            current,
            dict(totals.seconds),
            dict(totals.observed),
            dict(totals.events),
        )


def _order(part: Part) -> tuple[str, int]:
    return part.kind.value, part.number


def _checked(reading: PartReading) -> PartReading | None:
    """The range check that every value passes (docs/architecture.md, invariant 2)."""
    spec = PART_FIELDS[reading.field]
    if range_fault(spec, reading.value) is not None:
        return None
    return reading._replace(value=rounded(spec, reading.value))


def _book(totals: _Totals, reading: PartReading) -> None:
    name, kind = reading.field, PART_FIELDS[reading.field].kind
    if kind is Kind.EVENT:
        key = (name, reading.label)
        totals.events[key] = totals.events.get(key, 0) + int(reading.value)
    elif kind is Kind.RATIO and reading.start is not None:
        seconds = reading.end - max(reading.start, totals.until.get(name, reading.start))
        if seconds > 0:
            totals.until[name] = reading.end
            totals.seconds[name] = totals.seconds.get(name, 0.0) + reading.value * seconds
            totals.observed[name] = totals.observed.get(name, 0.0) + seconds
