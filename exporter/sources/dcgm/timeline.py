"""From DCGM's wall-clock timestamps to monotonic seconds."""

from __future__ import annotations

import time

STEP = 1.0  # seconds; a later estimate by more than that is a clock that was set back, not a slow call


class TimeLine:
    """The offset between both, measured at each read with the hostengine's own clock, which may be another machine's.

    A call takes time, so that each measurement is too late by a little: the smallest one counts.
    """

    def __init__(self) -> None:
        self._offset: float | None = None
        self._now = self._begun = 0.0

    def begin(self, now: float) -> None:
        """A read begins at ``now``; it may take long."""
        self._now, self._begun = now, time.monotonic()

    @property
    def now(self) -> float:
        """The monotonic time of this read, in seconds."""
        return self._now + (time.monotonic() - self._begun)

    @property
    def measured(self) -> bool:
        """Whether ``place`` can be called."""
        return self._offset is not None

    def measure(self, hostengine: int) -> None:
        """``hostengine``: microseconds since 1970 that its clock showed just now."""
        offset = self.now - hostengine * 1e-6
        if self._offset is None or offset < self._offset or offset > self._offset + STEP:
            self._offset = offset

    @property
    def hostengine(self) -> int:
        """What the hostengine's clock shows now, in microseconds since 1970. Call ``measure`` first."""
        assert self._offset is not None
        return round((self.now - self._offset) * 1e6)

    def place(self, timestamp: int) -> float:
        """The monotonic seconds of a DCGM timestamp (microseconds since 1970). Call ``measure`` first."""
        assert self._offset is not None
        return timestamp * 1e-6 + self._offset
