"""Totals of PCIe bytes that the GPU counts itself, preferred to the rates where both say the same.

DCGM 4.6 has them as fields 1091 and 1092 ("cumulative counter of PCIe traffic in bytes", dcgm_fields.h) and passes on
what NVML gives, whose header does not name the unit. So they have to agree with the rates, which are known to be bytes
per second, on real traffic before they are used. The cycle counters beside them (1084 to 1090, 1093 to 1096) are not
used: how many cycles of a pipe make a ratio of 1 is written nowhere (docs/validation.md).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from exporter.model import Entity, Reading
from exporter.sources.dcgm.tracks import PATIENCE, Place
from exporter.sources.dcgm.values import NATIVE_BYTES, Row, blank_of
from exporter.sources.dcgm.witness import Witness, contradicted

PROOFS = 3  # windows in a row in which both agree
TRAFFIC = 1e6  # bytes per second below which agreement proves nothing
TOLERANCE = 0.2  # both count over nearly the same window


@dataclass(slots=True)
class _Counter:
    end: float | None = None
    total: int = 0
    proofs: int = 0
    witness: Witness = field(default_factory=Witness)


class NativeBytes:
    """The counters of one GPU."""

    def __init__(self, entity: Entity) -> None:
        self._entity = entity
        self._counters = {id_: _Counter() for id_ in NATIVE_BYTES}

    def prefer(self, rows: Iterable[Row], interval: float, place: Place, readings: list[Reading]) -> list[Reading]:
        """The readings of one read, the rates of PCIe in them replaced where the counters have proved themselves, and
        without their value where they are 0 while the counters move."""
        counted: dict[str, list[Reading]] = {}
        for row in rows:
            if row.field in self._counters and (reading := self._count(row, interval, place)):
                counted.setdefault(reading.field, []).append(reading)
        for id_, name in NATIVE_BYTES.items():
            counter, ours = self._counters[id_], counted.get(name, [])
            theirs = [reading for reading in readings if reading.field == name]
            if not theirs:
                continue
            if ours and self._proved(counter, _mean(ours), _mean(theirs)):
                readings = [reading for reading in readings if reading.field != name] + ours
                continue
            counter.witness.hear(
                [r.value for r in theirs if r.value is not None], bool(ours) and _mean(ours) >= TRAFFIC
            )
            if counter.witness.denies:
                readings = [contradicted(r) if r.field == name else r for r in readings]
        return readings

    def cut(self) -> None:
        """The watch was made again."""
        for counter in self._counters.values():
            counter.end = None

    def _count(self, row: Row, interval: float, place: Place) -> Reading | None:
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

    def _proved(self, counter: _Counter, counted: float, rate: float) -> bool:
        if max(counted, rate) >= TRAFFIC:
            agree = abs(counted - rate) <= TOLERANCE * rate
            counter.proofs = min(counter.proofs + 1, PROOFS) if agree else 0
        return counter.proofs >= PROOFS


def _mean(readings: list[Reading]) -> float:
    seconds = [reading.end - (reading.start or 0.0) for reading in readings]
    weighed = sum((reading.value or 0.0) * length for reading, length in zip(readings, seconds, strict=True))
    return weighed / sum(seconds)
