"""Clocks: the system's, a faster one for replays, and one that moves only when told to."""

from __future__ import annotations

import time


class SystemClock:
    """Real time."""

    def monotonic(self) -> float:
        return time.monotonic()

    def timestamp(self) -> float:
        return time.time()


class ScaledClock:
    """Real time, ``speed`` times as fast on the monotonic side; time stamps stay those of the wall clock."""

    def __init__(self, speed: float) -> None:
        self._speed = speed
        self._origin = time.monotonic()

    def monotonic(self) -> float:
        return self._origin + (time.monotonic() - self._origin) * self._speed

    def timestamp(self) -> float:
        return time.time()


class VirtualClock:
    """Stands still until advanced. Time stamps move along, from ``timestamp`` on."""

    def __init__(self, start: float = 0.0, timestamp: float = 1_700_000_000.0) -> None:
        self._now = start
        self._offset = timestamp - start

    def monotonic(self) -> float:
        return self._now

    def timestamp(self) -> float:
        return self._now + self._offset

    def advance(self, seconds: float) -> None:
        """Move forward; never backwards (ValueError)."""
        if seconds < 0:
            raise ValueError(f"a clock cannot go back ({seconds} s)")
        self._now += seconds
