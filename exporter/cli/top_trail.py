"""SM active over the last ten minutes, for ``top``: gathered from the history of one document after the other."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from typing import Any

SECONDS = 600.0


class Trail:
    """What the documents' histories add up to."""

    def __init__(self) -> None:
        self.since = 0.0  # Unix seconds: what to ask for next
        self._points: dict[str, deque[tuple[float, float]]] = {}  # id -> (end, ratio)

    def add(self, history: Mapping[str, Any]) -> None:
        """Take in the ``history`` of a document."""
        ends = history["timestamps"]
        if not ends:
            return
        if ends[0] <= self.since:  # the exporter sent all of it again: its clock was set back
            self._points.clear()
        self.since = ends[-1]
        for name, columns in history["gpus"].items():
            points = self._points.setdefault(name, deque())
            points.extend((end, ratio) for end, ratio in zip(ends, columns["sm"], strict=True) if ratio is not None)
        for name, points in list(self._points.items()):
            while points and points[0][0] <= self.since - SECONDS:
                points.popleft()
            if not points:
                del self._points[name]

    def cells(self, name: str, count: int) -> list[float | None]:
        """Means over ``count`` equal stretches of the ten minutes; None where there is no value."""
        sums, numbers = [0.0] * count, [0] * count
        for end, ratio in self._points.get(name, ()):
            place = max(0, math.ceil((end - self.since + SECONDS) / SECONDS * count) - 1)  # a point lies before its end
            sums[place] += ratio
            numbers[place] += 1
        return [total / number if number else None for total, number in zip(sums, numbers, strict=True)]
