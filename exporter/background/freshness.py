"""How long the last result of something that is read again and again still counts."""

from __future__ import annotations

from typing import Generic, TypeVar

T = TypeVar("T")
INTERVALS = 3.0  # without a new result until the last one is too old: one may come late, one may get lost


def lifetime(interval: float, least: float = 0.0) -> float:
    """Seconds for which a result counts that should be replaced every ``interval`` seconds; ``least`` at least."""
    return max(least, INTERVALS * interval)


class LastKnown(Generic[T]):
    """The last result. Written by one thread, read by any: value and time are replaced together."""

    def __init__(self, lasts: float) -> None:
        """``lasts``: seconds for which it counts."""
        self._lasts = lasts
        self._last: tuple[T, float] | None = None

    def update(self, value: T, now: float) -> None:
        """Replace it by a result of ``now``."""
        self._last = (value, now)

    @property
    def value(self) -> T | None:
        """However old; None before the first."""
        last = self._last
        return None if last is None else last[0]

    def fresh(self, now: float) -> T | None:
        """None before the first, and when it is too old."""
        last = self._last
        return None if last is None or now - last[1] > self._lasts else last[0]
