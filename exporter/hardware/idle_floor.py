"""The power that one board draws when it does nothing, learnt while it does nothing."""

from __future__ import annotations

IDLE_ACTIVE = 0.01  # heuristic: below 1 % of any activity a window counts as idle (utilization.gpu has steps of 1 %)
WINDOW = 3  # heuristic: the median of three readings in a row, so that one bad reading is not learnt


class IdleFloor:
    """The lowest power seen in idle time; None until the board has been idle once.

    A board that never rests has no floor and hence no power ratio: a guess from its lowest load would call any
    steady load idle.
    """

    def __init__(self) -> None:
        self._recent: list[float] = []
        self.watts: float | None = None

    def feed(self, power: float | None, active: float | None) -> float | None:
        """One window: mean or instant ``power`` in watts, and the highest of busy, engine and SM activity (0..1).

        Returns the floor. A missing value teaches nothing, and 0 W is a reading that failed: no board draws nothing.
        """
        if power is None or active is None or power <= 0.0 or active > IDLE_ACTIVE:
            self._recent = []
            return self.watts
        self._recent = [*self._recent, power][-WINDOW:]
        if len(self._recent) == WINDOW:
            median = sorted(self._recent)[WINDOW // 2]
            self.watts = median if self.watts is None else min(self.watts, median)
        return self.watts
