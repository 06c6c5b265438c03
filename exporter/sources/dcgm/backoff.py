"""When to try something again that failed."""

from __future__ import annotations


class Backoff:
    """Waits ``first`` seconds after a failure, twice as long after each further one, ``longest`` at most."""

    def __init__(self, first: float, longest: float) -> None:
        self._first, self._longest = first, longest
        self._wait = first
        self._due = float("-inf")

    def due(self, now: float) -> bool:
        return now >= self._due

    def failed(self, now: float) -> None:
        self._due = now + self._wait
        self._wait = min(2 * self._wait, self._longest)

    def worked(self) -> None:
        """The next failure is a first one again."""
        self._wait, self._due = self._first, float("-inf")
