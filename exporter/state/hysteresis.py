"""One state a GPU that does not flap: a window of evidence, a least time to stay, limits eased for the state held."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any

from exporter.state.rolling import Rolling
from exporter.state.rules import RULES, Evidence, State, Verdict, judge
from exporter.state.thresholds import Thresholds

HOLD = 30.0  # seconds: the window of the evidence, and the least time in a state (docs/states.md)
SLACK = 0.15  # share by which limits are eased for the state that is held
_RATIOS = tuple(each.name for each in fields(Evidence) if each.name not in ("allocated", "processes", "pipes"))
_PIPE = "pipe:"
_UNSEEN = Verdict(State.UNKNOWN, "not observed for long enough")


@dataclass(slots=True)
class Tracker:
    """The state of one entity."""

    thresholds: Thresholds
    hold: float = HOLD
    verdict: Verdict = _UNSEEN
    since: float | None = None
    _rolling: Rolling = field(init=False)

    def __post_init__(self) -> None:
        self._rolling = Rolling(self.hold)

    def feed(self, end: float, seconds: float, evidence: Evidence) -> Verdict:
        """One sampling window of ``seconds`` that ended at ``end``; the state after it."""
        if self.since is None:
            self.since = end - seconds
        if not self._rolling.add(end, seconds, _values(evidence)):
            return self.verdict
        mean = self._mean(evidence)
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

    def _mean(self, newest: Evidence) -> Evidence:
        """Field by field, over the samples that have it; a field that most of the window lacks is lacking."""
        means = self._rolling.means()
        ratios: dict[str, Any] = {name: means.get(name) for name in _RATIOS}
        pipes = {name.removeprefix(_PIPE): mean for name, mean in means.items() if name.startswith(_PIPE)}
        return replace(newest, pipes=pipes, **ratios)


def _values(evidence: Evidence) -> dict[str, float]:
    values = {name: value for name in _RATIOS if (value := getattr(evidence, name)) is not None}
    values.update((_PIPE + name, value) for name, value in evidence.pipes.items())
    return values
