"""Second counters of the links: other counts of PCIe and NVLink bytes, to check profiling's rates.

Profiling's rates have been reported at exactly 0 for ever, on GPUs that moved gigabytes (field cases 25, 26). DCGM has
two more counters, whose units are not known well enough to take them in place of the rates unseen, but something that
moves is not 0:

- Fields 1091 and 1092 (DCGM 4.6): "cumulative counter of PCIe traffic in bytes" (dcgm_fields.h). DCGM passes on what
  NVML gives, whose header does not name the unit. They are preferred to the rates once both agree on real traffic. The
  cycle counters beside them (1084 to 1090, 1093 to 1096) are not used: how many cycles of a pipe make a ratio of 1 is
  written nowhere (docs/validation.md).
- Field 449: the driver's own count of bytes over NVLink.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from exporter.fields import INT32_BLANK
from exporter.model import Entity, Reading
from exporter.sources.dcgm.tracks import PATIENCE, Place
from exporter.sources.dcgm.values import NATIVE_BYTES, NVLINK_THROUGHPUT, FieldSample, blank_of
from exporter.trust import THRESHOLDS, Agreement, Contradiction, contradicted

_NVLINK = frozenset({"nvlink_transmit", "nvlink_receive"})


@dataclass(slots=True)
class _Counter:
    end: float | None = None
    total: int = 0
    agreement: Agreement = field(default_factory=Agreement)
    contradiction: Contradiction = field(default_factory=Contradiction)


class PcieTotals:
    """The totals of PCIe bytes of one GPU."""

    def __init__(self, entity: Entity) -> None:
        self._entity = entity
        self._counters = {id_: _Counter() for id_ in NATIVE_BYTES}

    def prefer(
        self, rows: Iterable[FieldSample], interval: float, place: Place, readings: list[Reading]
    ) -> list[Reading]:
        """The readings of one read, the rates of PCIe in them replaced where the totals agree with them, and without
        their value where they are 0 while the totals move."""
        counted: dict[str, list[Reading]] = {}
        for row in rows:
            if row.field in self._counters and (reading := self._count(row, interval, place)):
                counted.setdefault(reading.field, []).append(reading)
        for id_, name in NATIVE_BYTES.items():
            counter, ours = self._counters[id_], counted.get(name, [])
            theirs = [reading for reading in readings if reading.field == name]
            if not theirs:
                continue
            if ours:
                counter.agreement.feed(_mean(ours), _mean(theirs))
                if counter.agreement.holds:
                    readings = [reading for reading in readings if reading.field != name] + ours
                    continue
            moved = bool(ours) and _mean(ours) >= THRESHOLDS.pcie_moved
            counter.contradiction.feed([r.value for r in theirs if r.value is not None], moved)
            if counter.contradiction.holds:
                readings = [contradicted(r) if r.field == name else r for r in readings]
        return readings

    def cut(self) -> None:
        """The watch was made again."""
        for counter in self._counters.values():
            counter.end = None

    def _count(self, row: FieldSample, interval: float, place: Place) -> Reading | None:
        if row.status != 0:
            return None
        counter = self._counters[row.field]
        if not isinstance(row.value, int) or blank_of(row.field, row.value) is not None:
            counter.end = None
            return None
        before, total, end = counter.end, counter.total, place(row.time)
        counter.end, counter.total = end, row.value
        if before is None or row.value < total or not 0.0 < end - before <= PATIENCE * interval:
            return None
        rate = (row.value - total) / (end - before)
        return Reading(self._entity, NATIVE_BYTES[row.field], end, rate, before)


class NvlinkCount:
    """The driver's count of NVLink bytes of one GPU. It may be sampled less often than the rates are."""

    def __init__(self) -> None:
        self._contradiction = Contradiction()
        self._moved: bool | None = None  # None: no new sample

    def note(self, rows: Iterable[FieldSample]) -> None:
        """The rows of the context, among which it is."""
        for row in rows:
            if row.field == NVLINK_THROUGHPUT and row.status == 0 and row.value is not None:
                known = blank_of(row.field, row.value) is None
                self._moved = known and THRESHOLDS.nvlink_moved <= row.value < INT32_BLANK

    def check(self, readings: list[Reading]) -> list[Reading]:
        """The readings of one read, false zeros among them without their value. Each sample of the count is used once;
        rates other than 0 between two of them end the contradiction."""
        rates = [reading.value for reading in readings if reading.field in _NVLINK and reading.value is not None]
        if rates and (self._moved is not None or any(rates)):
            self._contradiction.feed(rates, self._moved is True)
            self._moved = None
        if not self._contradiction.holds:
            return readings
        return [contradicted(reading) if reading.field in _NVLINK else reading for reading in readings]


def _mean(readings: list[Reading]) -> float:
    seconds = [reading.end - (reading.start or 0.0) for reading in readings]
    weighed = sum((reading.value or 0.0) * length for reading, length in zip(readings, seconds, strict=True))
    return weighed / sum(seconds)
