"""One state a GPU that does not flap: a window of evidence, a least time to stay, limits eased for the state held."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from functools import partial
from operator import attrgetter
from typing import Any

from exporter.state.rules import RULES, Evidence, State, Verdict, judge
from exporter.state.thresholds import Thresholds

HOLD = 30.0  # seconds: the window of the evidence, and the least time in a state (DESIGN 6, 5)
SLACK = 0.15  # share by which limits are eased for the state that is held
_RATIOS = [each.name for each in fields(Evidence) if each.name not in ("allocated", "processes", "pipes")]
_UNSEEN = Verdict(State.UNKNOWN, "not observed for long enough")


@dataclass(slots=True)
class Tracker:
    """The state of one entity."""

    thresholds: Thresholds
    hold: float = HOLD
    verdict: Verdict = _UNSEEN
    since: float | None = None
    _window: deque[tuple[float, float, Evidence]] = field(default_factory=deque)  # (end, seconds, evidence)

    def feed(self, end: float, seconds: float, evidence: Evidence) -> Verdict:
        """One sampling window of ``seconds`` that ended at ``end``; the state after it."""
        if self.since is None:
            self.since = end - seconds
        self._window.append((end, seconds, evidence))
        while self._window and self._window[0][0] <= end - self.hold:
            self._window.popleft()
        mean = self._mean()
        found = judge(mean, self.thresholds)
        if found.state is self.verdict.state:
            self.verdict = found
        elif self._may_leave(end, mean):
            self.verdict, self.since = found, end
        return self.verdict

    def _may_leave(self, end: float, mean: Evidence) -> bool:
        assert self.since is not None
        if end - self.since < self.hold:
            return False
        if self.verdict.state is State.UNKNOWN:
            return True
        eased, held = replace(self.thresholds, slack=SLACK), self.verdict.state
        for rule in RULES:  # stays while a rule of its own holds with eased limits, and none before it with plain ones
            if rule.state is held and rule.holds(mean, eased) is True:
                return held is State.MIXED
            if rule.state is not held and rule.holds(mean, self.thresholds) is True:
                return True
        return True

    def _mean(self) -> Evidence:
        """Field by field, over the samples that have it; a field that most of the window lacks is lacking."""
        newest, pipes = self._window[-1][2], {name for _, _, evidence in self._window for name in evidence.pipes}
        means: dict[str, Any] = {name: self._weigh(attrgetter(name)) for name in _RATIOS}
        found = {name: self._weigh(partial(_pipe, name)) for name in pipes}
        return replace(newest, pipes={name: mean for name, mean in found.items() if mean is not None}, **means)

    def _weigh(self, get: Callable[[Evidence], float | None]) -> float | None:
        known = [(seconds, value) for _, seconds, e in self._window if (value := get(e)) is not None]
        covered = sum(seconds for seconds, _ in known)
        if not known or 2 * covered < sum(seconds for _, seconds, _ in self._window):
            return None
        return sum(seconds * value for seconds, value in known) / covered


def _pipe(name: str, evidence: Evidence) -> float | None:
    return evidence.pipes.get(name)
