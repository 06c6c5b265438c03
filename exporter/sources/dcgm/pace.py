"""How often the hostengine samples, judged by the timestamps: is the latest sample the only one to read?

A hostengine samples at the shortest interval that any of its clients asked for, and does not report it. It never
samples earlier than that interval after the last sample, so that a shorter distance is proof of another client.
"""

from __future__ import annotations

SHARE, LEAST = 0.05, 0.02  # of the interval, and in seconds: what a busy hostengine may be late by
OVERDUE = 2.5  # intervals


class SamplePace:
    """Judges the distance of samples. ``interval``: the seconds that were asked for."""

    def __init__(self, interval: float) -> None:
        tolerance = max(LEAST, SHARE * interval)
        self._least, self._most = round((interval - tolerance) * 1e6), round((interval + tolerance) * 1e6)
        self._overdue = round(OVERDUE * interval * 1e6)

    def regular(self, before: int, time: int) -> bool:
        """Whether the sample at ``time`` is the one after the sample at ``before`` (microseconds)."""
        return self._least <= time - before <= self._most

    def short(self, before: int, time: int) -> bool:
        """Whether the two are closer than was asked for: another client wants them faster."""
        return time - before < self._least

    def overdue(self, before: int, now: int) -> bool:
        """Whether the sample after the one at ``before`` should have come long ago."""
        return now - before > self._overdue


class Budget:
    """Limits reads of histories to half of the time: otherwise one late read would make all later ones late, too."""

    def __init__(self) -> None:
        self._rest_until = float("-inf")
        self._spent = 0.0
        self.allows = True

    def begin(self, now: float) -> None:
        """Call at the start of a read."""
        self.allows, self._spent = now >= self._rest_until, 0.0

    def spend(self, begun: float, ended: float) -> None:
        """One history was read; others of the same read may follow."""
        self._spent += ended - begun
        self._rest_until = ended + self._spent
