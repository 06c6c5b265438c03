"""Brings fields that were read over different windows onto common intervals (docs/architecture.md, invariant 4).

Each field is a track of (start, end, mean) pieces. ``cut`` closes a window at the latest time that every delivering
field has reached, and gives the sub-intervals in which all required fields are known, with their means over it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import NamedTuple

GAP = 1e-6  # seconds; pieces closer than this touch
HORIZON = 60.0  # seconds for which pieces wait for a field that lags behind
KEPT = 600  # pieces kept a field: HORIZON at 10 Hz


class Interval(NamedTuple):
    """An interval in which every required field is known."""

    start: float
    end: float
    means: Mapping[str, float]

    @property
    def seconds(self) -> float:
        return self.end - self.start


class Aligner:
    """The tracks of one entity."""

    def __init__(self) -> None:
        self._tracks: dict[str, deque[tuple[float, float, float]]] = {}
        self._cut = float("-inf")

    def add(self, field: str, start: float, end: float, value: float) -> None:
        """Append a piece; what lies before the last cut came too late to be compared, and is left out."""
        start = max(start, self._cut)
        if end - start > GAP:
            track = self._tracks.get(field)
            if track is None:
                track = self._tracks[field] = deque(maxlen=KEPT)
            track.append((start, end, value))

    def cut(self, required: Iterable[str]) -> list[Interval]:
        """Close the window. Intervals are disjoint and in order; none until every required field has delivered."""
        wanted = tuple(required)
        ends = [track[-1][1] for field in wanted if (track := self._tracks.get(field))]
        if len(ends) < len(wanted):
            if ends:
                self._trim(max(ends) - HORIZON, wanted)
            return []
        if (same := self._same_window(wanted)) is not None:
            return [same]
        cut = min(ends)
        spans = self._common(wanted, cut)
        intervals = [Interval(a, b, {f: self._mean(f, a, b) for f in wanted}) for a, b in spans]
        self._trim(cut, wanted)
        return intervals

    def _same_window(self, wanted: tuple[str, ...]) -> Interval | None:
        """The usual case at a fraction of the cost: one piece per field, all of the same window."""
        tracks = [self._tracks[field] for field in wanted]
        start, end, _ = tracks[0][0]
        if any(len(track) != 1 or track[0][0] != start or track[0][1] != end for track in tracks):
            return None
        means = {field: track[0][2] for field, track in zip(wanted, tracks, strict=True)}
        for track in self._tracks.values():
            track.clear()
        self._cut = max(self._cut, end)
        return Interval(start, end, means)

    def _common(self, wanted: tuple[str, ...], cut: float) -> list[tuple[float, float]]:
        spans = self._covered(wanted[0], cut)
        for field in wanted[1:]:
            other = self._covered(field, cut)
            if other != spans:
                spans = _intersection(spans, other)
        return spans

    def _covered(self, field: str, cut: float) -> list[tuple[float, float]]:
        spans: list[tuple[float, float]] = []
        for start, piece_end, _ in self._tracks[field]:
            if start >= cut:
                break
            end = min(piece_end, cut)
            if spans and start - spans[-1][1] <= GAP:
                spans[-1] = (spans[-1][0], end)
            else:
                spans.append((start, end))
        return spans

    def _mean(self, field: str, start: float, end: float) -> float:
        track = self._tracks[field]
        if track[0][0] <= start and track[0][1] >= end:
            return track[0][2]
        weighed = covered = 0.0
        for a, b, value in track:
            seconds = min(b, end) - max(a, start)
            if seconds > 0:
                weighed += value * seconds
                covered += seconds
        return weighed / covered

    def _trim(self, cut: float, wanted: tuple[str, ...]) -> None:
        self._cut = max(self._cut, cut)
        for field in [f for f in self._tracks if f not in wanted]:
            del self._tracks[field]
        for track in self._tracks.values():
            while track and track[0][1] <= cut + GAP:
                track.popleft()
            if track and track[0][0] < cut:
                _, end, value = track[0]
                track[0] = (cut, end, value)


def _intersection(left: list[tuple[float, float]], right: list[tuple[float, float]]) -> list[tuple[float, float]]:
    spans: list[tuple[float, float]] = []
    i = j = 0
    while i < len(left) and j < len(right):
        start, end = max(left[i][0], right[j][0]), min(left[i][1], right[j][1])
        if end - start > GAP:
            spans.append((start, end))
        if left[i][1] < right[j][1]:
            i += 1
        else:
            j += 1
    return spans
