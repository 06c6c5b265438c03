"""When to try something again that failed."""

from __future__ import annotations

import math


class Backoff:
    """Waits ``first`` seconds after a failure, twice as long after each further one, ``longest`` at most."""

    def __init__(self, first: float, longest: float, calm: float = math.inf) -> None:
        """``calm``: a failure that comes more seconds than this after the one before is a first one again."""
        self._first, self._longest, self._calm = first, longest, calm
        self._wait = first
        self._due = self._failed_at = -math.inf

    def due(self, now: float) -> bool:
        """Nothing has failed, or the wait is over."""
        return now >= self._due

    def failed(self, now: float) -> float:
        """The seconds to wait from ``now`` on."""
        if now - self._failed_at > self._calm:
            self._wait = self._first
        wait = self._wait
        self._due, self._failed_at = now + wait, now
        self._wait = min(2 * wait, self._longest)
        return wait

    def worked(self) -> None:
        """The next failure is a first one again."""
        self._wait, self._due = self._first, -math.inf
