"""From the rows of one GPU to readings: intervals, instants and events, and why there is none."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from exporter.background.freshness import INTERVALS
from exporter.fields import CLOCK_EVENTS, Kind
from exporter.model import Absence, Entity, Reading
from exporter.sources.dcgm.errors import Code, absence_of
from exporter.sources.dcgm.values import SPECS, FieldSample, Spec, blank_of

PATIENCE = INTERVALS  # without a sample after which the last one is no longer current

Place = Callable[[int], float]
"""Converts a DCGM timestamp (microseconds) to monotonic seconds."""


@dataclass(slots=True)
class _FieldTrack:
    """The state of one field of one entity between reads."""

    end: float | None = None  # of the last sample, blank or not
    latest: tuple[Reading, ...] = ()  # of a field of instants
    absence: Absence | None = None  # why the last sample has no value


_NEVER = _FieldTrack()


class Tracks:
    """All fields of the entities of one GPU. ``entities``: (kind, number) in DCGM -> entity."""

    def __init__(self, entities: Mapping[tuple[int, int], Entity]) -> None:
        self._tracks: dict[Entity, dict[int, _FieldTrack]] = {entity: {} for entity in entities.values()}
        self._known = {key: (entity, self._tracks[entity]) for key, entity in entities.items()}

    def feed(self, rows: Iterable[FieldSample], interval: float, place: Place) -> list[Reading]:
        """The rows of one read of one watch, and its interval. Instants wait for ``settle``.

        A sample of a mean covers the time since the sample before it; the first one, or one after a gap, covers nothing
        that is known and only begins the next.
        """
        readings: list[Reading] = []
        longest = PATIENCE * interval
        for row in rows:
            known, spec = self._known.get((row.kind, row.entity)), SPECS.get(row.field)
            if known is None or spec is None:
                continue
            entity, tracks = known
            track = tracks.get(row.field)
            if track is None:
                track = tracks[row.field] = _FieldTrack()
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
            kind, value = spec.kind, row.value * spec.scale
            if kind is Kind.RATIO or kind is Kind.RATE:
                if before is not None and 0.0 < end - before <= longest:
                    readings.append(Reading(entity, spec.field, end, value, before))
            elif kind is Kind.EVENT:
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
        tracks = self._tracks[entity]
        for field in ids:
            spec, track = SPECS.get(field), tracks.get(field) or _NEVER
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
        tracks = self._tracks[entity]
        ends = [track.end for field in ids if (track := tracks.get(field)) and track.end is not None]
        return max(ends, default=None)

    def cut(self, ids: Iterable[int]) -> None:
        """The watch of these fields was made again: their next samples are the first ones."""
        for tracks in self._tracks.values():
            for field in ids:
                tracks.pop(field, None)


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
