"""Plays timelines as if they were GPUs: a source of readings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from exporter.fields import FIELDS, Kind
from exporter.model import Absence, Batch, Device, Reading
from exporter.sources.timeline import Timeline


class TimelineSource:
    """One timeline a device. Shorter ones rest until the longest ends; then all begin again, or the source ends.

    A level channel named ``field:label`` becomes readings of ``field`` with that label. Where power is known, energy is
    its exact integral.
    """

    def __init__(
        self,
        name: str,
        tracks: Sequence[tuple[Device, Timeline]],
        *,
        loop: bool,
        duration: float | None = None,
        details: Mapping[str, str] | None = None,
    ) -> None:
        """``duration``: length of one pass in seconds; the longest timeline's by default."""
        self.name = name
        self._tracks = [(replace(device, fields=_fields(timeline)), timeline) for device, timeline in tracks]
        self._pass = max(timeline.duration for _, timeline in tracks) if duration is None else duration
        self._loop = loop
        self._details = dict(details or {})
        self._origin: float | None = None
        self._played = 0.0
        self._joules: dict[int, float] = {}

    @property
    def seconds(self) -> float:
        """Length of one pass."""
        return self._pass

    def read(self, now: float) -> Batch:
        """The window since the last read; the first read only says which devices there are."""
        if self._origin is None:
            self._origin = now
        start, end = self._played, now - self._origin
        if not self._loop:
            end = min(end, self._pass)
        readings: list[Reading] = []
        if end > start:
            for number, (device, timeline) in enumerate(self._tracks):
                readings.extend(self._window(number, device, timeline, start, end))
            self._played = end
        devices = [device for device, _ in self._tracks]
        final = not self._loop and start >= self._pass
        return Batch(self.name, self._origin + end, devices, readings, details=self._details, final=final)

    def close(self) -> None:
        """Nothing is held open."""

    def _window(self, number: int, device: Device, timeline: Timeline, start: float, end: float) -> Iterator[Reading]:
        assert self._origin is not None
        since, until = self._origin + start, self._origin + end
        spans = tuple(self._spans(timeline, start, end))
        for channel in timeline.channels:
            field, _, label = channel.partition(":")
            spec = FIELDS.get(field)
            if spec is None:
                continue
            if spec.kind in (Kind.RATIO, Kind.RATE):
                total = _total(timeline, channel, spans)
                value = None if total is None else total / (end - start)
                absence = Absence.NO_DATA if value is None else None
                yield Reading(device.entity, field, until, value, since, absence)
            else:
                level = timeline.at(channel, self._position(timeline, end))
                yield Reading(device.entity, field, until, level, None, None, label)
        if "power" in timeline.channels:
            self._joules[number] = self._joules.get(number, 0.0) + (_total(timeline, "power", spans) or 0.0)
            yield Reading(device.entity, "energy", until, self._joules[number])

    def _position(self, timeline: Timeline, time: float) -> float:
        return min(time % self._pass if self._loop else time, timeline.duration)

    def _spans(self, timeline: Timeline, start: float, end: float) -> Iterator[tuple[float, float]]:
        """(start, end] of playing time as pieces of the timeline's own time; what lies behind its end is left out."""
        while end - start > 1e-12:
            turn = start // self._pass if self._loop else 0.0
            base = turn * self._pass
            stop = min(end, base + self._pass)
            if stop <= start:  # rounding at a turn
                stop = min(end, base + 2 * self._pass)
                base += self._pass
            inside = min(stop - base, timeline.duration)
            if inside > start - base:
                yield max(0.0, start - base), inside
            start = stop


def _fields(timeline: Timeline) -> frozenset[str]:
    fields = {channel.partition(":")[0] for channel in timeline.channels} & set(FIELDS)
    return frozenset(fields | ({"energy"} if "power" in fields else set()))


def _total(timeline: Timeline, channel: str, spans: Sequence[tuple[float, float]]) -> float | None:
    parts = [timeline.integral(channel, start, end) for start, end in spans]
    return None if any(part is None for part in parts) else sum(part for part in parts if part is not None)
