"""From the rows of one GPU to readings: intervals, instants and events, and why there is none."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from exporter.background.freshness import INTERVALS
from exporter.fields import CLOCK_EVENTS, Kind
from exporter.model import Absence, Entity, Reading
from exporter.sources.dcgm.errors import Code, absence_of
from exporter.sources.dcgm.values import SPECS, Row, Spec, blank_of

PATIENCE = INTERVALS  # without a sample after which the last one is no longer current

Place = Callable[[int], float]
"""From a DCGM timestamp to the program's time line."""


@dataclass(slots=True)
class _Track:
    """What is kept of one field of one entity from read to read."""

    end: float | None = None  # of the last sample, blank or not
    latest: tuple[Reading, ...] = ()  # of a field of instants
    absence: Absence | None = None  # why the last sample has no value


class Tracks:
    """All fields of the entities of one GPU. ``entities``: from DCGM's kind and number to what is meant."""

    def __init__(self, entities: Mapping[tuple[int, int], Entity]) -> None:
        self._entities = entities
        self._tracks: dict[tuple[Entity, int], _Track] = {}

    def feed(self, rows: Iterable[Row], interval: float, place: Place) -> list[Reading]:
        """The rows of one read of one watch, and its interval. Instants wait for ``settle``.

        A sample of a mean covers the time since the sample before it; the first one, or one after a gap, covers nothing
        that is known and only begins the next.
        """
        readings: list[Reading] = []
        for row in rows:
            entity, spec = self._entities.get((row.kind, row.entity)), SPECS.get(row.field)
            if entity is None or spec is None:
                continue
            track = self._tracks.setdefault((entity, row.field), _Track())
            if row.status != 0:
                if row.status != Code.NO_DATA:
                    track.absence, track.latest = absence_of(row.status), ()
                continue
            before, end = None if row.first else track.end, place(row.time)
            track.end = end
            track.absence = blank_of(row.field, row.value)
            if track.absence is not None or row.value is None:
                track.latest = ()
                continue
            value = row.value * spec.scale
            if spec.kind is Kind.RATIO or spec.kind is Kind.RATE:
                if before is not None and 0.0 < end - before <= PATIENCE * interval:
                    readings.append(Reading(entity, spec.field, end, value, before))
            elif spec.kind is Kind.EVENT:
                readings += _events(entity, spec, end, int(row.value))
            else:
                track.latest = _instants(entity, spec, end, value)
        return readings

    def settle(
        self, entity: Entity, ids: Iterable[int], interval: float, now: float, delivered: Collection[tuple[Entity, str]]
    ) -> list[Reading]:
        """Of each watched field: its instant while that is current, or why there is none. A mean that was ``delivered``
        in this read needs neither, nor does one whose next sample is not due yet."""
        readings: list[Reading] = []
        for field in ids:
            spec, track = SPECS.get(field), self._tracks.get((entity, field)) or _Track()
            if spec is None:
                continue
            current = track.end is not None and now - track.end <= PATIENCE * interval
            if track.absence is not None:
                readings.append(Reading(entity, spec.field, now, None, absence=track.absence))
            elif current:
                readings += track.latest
            elif spec.kind is not Kind.EVENT and (entity, spec.field) not in delivered:
                readings.append(Reading(entity, spec.field, now, None, absence=Absence.NO_DATA))
        return readings

    def last(self, entity: Entity, ids: Iterable[int]) -> float | None:
        """When the newest sample of these fields was taken, blank or not."""
        ends = [track.end for field in ids if (track := self._tracks.get((entity, field))) and track.end is not None]
        return max(ends, default=None)

    def cut(self, ids: Iterable[int]) -> None:
        """The watch of these fields was made again: the next samples are first ones."""
        gone = set(ids)
        self._tracks = {key: track for key, track in self._tracks.items() if key[1] not in gone}


def _events(entity: Entity, spec: Spec, end: float, code: int) -> list[Reading]:
    """One sample, one event. DCGM before 4.5 also has samples of code 0: no error (field case 14)."""
    return [Reading(entity, spec.field, end, 1.0, label=str(code))] if code else []


def _instants(entity: Entity, spec: Spec, end: float, value: float) -> tuple[Reading, ...]:
    if spec.kind is not Kind.ACTIVE:
        return (Reading(entity, spec.field, end, value),)
    mask = int(value)
    return tuple(
        Reading(entity, spec.field, end, float(bool(mask & bit)), label=label) for bit, label in CLOCK_EVENTS.items()
    )
