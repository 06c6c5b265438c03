"""Plays timelines as if they were GPUs: a source of readings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import inf
from typing import NamedTuple

from exporter.fields import FIELDS, Kind
from exporter.model import Absence, Batch, Device, Reading
from exporter.sources.timeline import Timeline

_MEANS = (Kind.RATIO, Kind.RATE)


class _Span(NamedTuple):
    """A piece of the pass, and how often it was played."""

    start: float
    end: float
    times: float


Spans = Sequence[_Span]


class TimelineSource:
    """One timeline a device. Shorter ones rest until the longest ends; then all begin again, or the source ends.

    While a timeline rests, nothing runs and its levels stay what they were at its end. A level channel named
    ``field:label`` becomes readings of ``field`` with that label. Where power is known, energy is its exact integral.
    A device that says which ``fields`` it has gives only those.
    """

    def __init__(
        self,
        name: str,
        tracks: Sequence[tuple[Device, Timeline]],
        *,
        loop: bool,
        duration: float | None = None,
        length: float | None = None,
        details: Mapping[str, str] | None = None,
    ) -> None:
        """``duration``: seconds of one pass; the longest timeline's by default. ``length``: seconds of playing after
        which a source that does not ``loop`` ends; one pass by default. ValueError when a pass has no length.
        """
        self.name = name
        self._tracks = [_PlayedDevice(device, timeline) for device, timeline in tracks]
        self._pass = max(timeline.duration for _, timeline in tracks) if duration is None else duration
        if self._pass <= 0:
            raise ValueError(f"nothing to play: a pass of {self._pass} s")
        self._length = inf if loop else self._pass if length is None else length
        self._details = dict(details or {})
        self._origin: float | None = None
        self._played = 0.0

    @property
    def seconds(self) -> float:
        """Length of one pass."""
        return self._pass

    def read(self, now: float) -> Batch:
        """The window since the last read. The first one has no length: it says which devices there are, and levels."""
        first = self._origin is None
        if self._origin is None:
            self._origin = now
        start, end = self._played, max(self._played, min(now - self._origin, self._length))
        since, until = self._origin + start, self._origin + end
        spans = self._spans(start, end)
        readings: list[Reading] = []
        for track in self._tracks if first or until > since else ():
            if until > since:
                readings.extend(track.means(spans, since, until))
            readings.extend(track.instants(spans, self._position(end), until))
        self._played = end
        devices = [track.device for track in self._tracks]
        return Batch(self.name, until, devices, readings, details=self._details, final=start >= self._length)

    def close(self) -> None:
        """Nothing is held open."""

    def _position(self, time: float) -> float:
        """Within the pass; the end of playing is the end of a pass, not the beginning of one that never comes."""
        position = time % self._pass
        return self._pass if time >= self._length and position == 0.0 else position

    def _spans(self, start: float, end: float) -> Spans:
        """(start, end] of playing time as pieces of the pass. The remainders are exact: nothing is lost at a turn."""
        (turn, begin), (last, stop) = divmod(start, self._pass), divmod(end, self._pass)
        if turn == last:
            return (_Span(begin, stop, 1.0),)
        return (_Span(begin, self._pass, 1.0), _Span(0.0, self._pass, last - turn - 1.0), _Span(0.0, stop, 1.0))


class _PlayedDevice:
    """A device with its timeline, what to read from it, and the energy it has used."""

    def __init__(self, device: Device, timeline: Timeline) -> None:
        named = [(channel, *_split(channel)) for channel in sorted(timeline.channels)]
        given = [
            (channel, field, label)
            for channel, field, label in named
            if field in FIELDS and (not device.fields or field in device.fields)
        ]
        self._means = [(channel, field) for channel, field, _ in given if FIELDS[field].kind in _MEANS]
        self._levels = [each for each in given if FIELDS[each[1]].kind not in _MEANS]
        fields = {field for _, field, _ in given}
        self._metered = "power" in fields
        self.device = replace(device, fields=frozenset(fields | ({"energy"} if self._metered else set())))
        self._timeline = timeline
        self._joules = 0.0

    def means(self, spans: Spans, since: float, until: float) -> Iterator[Reading]:
        """Over the spans of the timeline, which are (since, until] on the clock."""
        for channel, field in self._means:
            total = _total(self._timeline, channel, spans)
            if total is None:
                yield Reading(self.device.entity, field, until, None, since, Absence.NO_DATA)
            else:
                yield Reading(self.device.entity, field, until, total / (until - since), since)

    def instants(self, spans: Spans, position: float, until: float) -> Iterator[Reading]:
        """At a position of the timeline, which is ``until`` on the clock; the spans led there."""
        position = min(position, self._timeline.duration)
        for channel, field, label in self._levels:
            yield Reading(self.device.entity, field, until, self._timeline.at(channel, position), label=label)
        if self._metered:
            self._joules += _joules(self._timeline, spans)
            yield Reading(self.device.entity, "energy", until, self._joules)


def _split(channel: str) -> tuple[str, str]:
    field, _, label = channel.partition(":")
    return field, label


def _total(timeline: Timeline, channel: str, spans: Spans) -> float | None:
    """What lies behind the timeline's end counts as 0."""
    total = 0.0
    for start, end, times in spans:
        if times:
            part = timeline.integral(channel, start, end)
            if part is None:
                return None
            total += times * part
    return total


def _joules(timeline: Timeline, spans: Spans) -> float:
    """Power integrated; behind the timeline's end it stays what it was."""
    rest = sum(times * max(0.0, end - max(start, timeline.duration)) for start, end, times in spans)
    return (_total(timeline, "power", spans) or 0.0) + rest * timeline.at("power", timeline.duration)
