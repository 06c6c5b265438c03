"""One state a GPU that does not flap: a window of evidence, a least time to stay, limits eased for the state held."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, fields, replace
from typing import Any

from exporter.state.rules import RULES, Evidence, State, Verdict, judge
from exporter.state.thresholds import Thresholds

HOLD = 30.0  # seconds: the window of the evidence, and the least time in a state (DESIGN 6, 5)
SLACK = 0.15  # share by which limits are eased for the state that is held
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
        eased = replace(self.thresholds, slack=SLACK)
        rule = next(rule for rule in RULES if rule.state is self.verdict.state)
        earlier = RULES[: RULES.index(rule)]
        # stays while its own rule holds with eased limits and no rule before it holds with the plain ones
        stays = rule.holds(mean, eased) is True and not any(r.holds(mean, self.thresholds) for r in earlier)
        return not stays or rule.state is State.MIXED

    def _mean(self) -> Evidence:
        """Field by field, over the samples that have it; a field that the newest sample lacks is lacking."""
        newest = self._window[-1][2]
        means: dict[str, Any] = {
            each.name: self._weigh(each.name)
            for each in fields(Evidence)
            if each.name not in ("allocated", "processes", "pipes") and getattr(newest, each.name) is not None
        }
        pipes = {name: self._weigh_pipe(name) for name in newest.pipes}
        return replace(newest, pipes=pipes, **means)

    def _weigh(self, name: str) -> float:
        known = [(s, v) for _, s, e in self._window if (v := getattr(e, name)) is not None]
        return float(sum(s * v for s, v in known) / sum(s for s, _ in known))

    def _weigh_pipe(self, name: str) -> float:
        known = [(s, e.pipes[name]) for _, s, e in self._window if name in e.pipes]
        return sum(s * v for s, v in known) / sum(s for s, _ in known)
