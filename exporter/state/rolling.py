"""Means over the last seconds, kept as running sums: the cost of a sample does not grow with the window."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

BUCKET = 0.9  # seconds; faster samples are put together first, so that the window has few entries


class Rolling:
    """Values by name, each weighed by the seconds that it stands for."""

    def __init__(self, window: float, bucket: float = BUCKET) -> None:
        """``window`` and ``bucket`` in seconds; faster samples than ``bucket`` are put together first."""
        self._window = window
        self._bucket = bucket
        self._entries: deque[tuple[float, float, dict[str, tuple[float, float]]]] = deque()
        self._sums: dict[str, tuple[float, float]] = {}  # name -> (value x seconds, seconds)
        self._seconds = 0.0
        self._pending: dict[str, tuple[float, float]] = {}
        self._pending_seconds = 0.0

    def add(self, end: float, seconds: float, values: Mapping[str, float]) -> bool:
        """One sample; True when an entry was completed, and the means have moved."""
        for name, value in values.items():
            weighed, covered = self._pending.get(name, (0.0, 0.0))
            self._pending[name] = (weighed + value * seconds, covered + seconds)
        self._pending_seconds += seconds
        if self._pending_seconds < self._bucket:
            return False
        self._entries.append((end, self._pending_seconds, self._pending))
        self._change(self._pending, self._pending_seconds, 1.0)
        self._pending, self._pending_seconds = {}, 0.0
        while self._entries and self._entries[0][0] <= end - self._window:
            _, gone, sums = self._entries.popleft()
            self._change(sums, gone, -1.0)
        return True

    def means(self) -> dict[str, float]:
        """The means of all names that at least half of the window has."""
        least = self._seconds / 2
        return {
            name: max(0.0, weighed / covered) for name, (weighed, covered) in self._sums.items() if covered >= least
        }

    def _change(self, sums: Mapping[str, tuple[float, float]], seconds: float, sign: float) -> None:
        self._seconds += sign * seconds
        for name, (weighed, covered) in sums.items():
            before = self._sums.get(name, (0.0, 0.0))
            after = (before[0] + sign * weighed, before[1] + sign * covered)
            if after[1] > 1e-6:
                self._sums[name] = after
            else:
                self._sums.pop(name, None)  # and with it what rounding has left
