"""One state per GPU that does not flap: windows of evidence, a minimum duration, limits relaxed for the current one.

The mean over ``hold`` gives the state. It changes once that mean has given another for STEADY windows. Under a load
that comes and goes it may give none for that long: then, after LONG windows, the mean over all of these decides.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any

from exporter.state.kleene import some
from exporter.state.rolling import Rolling
from exporter.state.rules import RULES, Evidence, State, Verdict, judge
from exporter.state.thresholds import Thresholds

HOLD = 30.0  # seconds: the window of the evidence, and the shortest time in a state (docs/states.md)
STEADY = 2  # windows: what repeats within a minute cannot change the state, and a step does not pass through others
LONG = 10  # windows: several periods of any load that is not steady for STEADY, so that its mean hardly moves
SLACK = 0.15  # share by which limits are relaxed for the current state
_RATIOS = tuple(each.name for each in fields(Evidence) if each.name not in ("allocated", "processes", "pipes"))
_PIPE = "pipe:"
UNSEEN = Verdict(State.UNKNOWN, "not observed for long enough")


@dataclass(slots=True)
class Tracker:
    """The state of one entity. Times are seconds of observation: a gap between windows is no evidence."""

    thresholds: Thresholds
    hold: float = HOLD
    verdict: Verdict = UNSEEN
    _eased: Thresholds = field(init=False)
    _short: Rolling = field(init=False)
    _long: Rolling = field(init=False)
    _observed: float = 0.0
    _since: float = 0.0  # when the state was entered
    _answer: State = State.UNKNOWN  # of the short window
    _answered: float = 0.0  # since when
    _steady: float | None = None  # when the short window was last steady; None before the first state

    def __post_init__(self) -> None:
        self._eased = replace(self.thresholds, slack=SLACK)
        self._short, self._long = Rolling(self.hold), Rolling(self.hold * LONG, bucket=self.hold)

    def feed(self, end: float, seconds: float, evidence: Evidence) -> Verdict:
        """One sampling window of ``seconds`` that ended at ``end``; the state after it."""
        values = _values(evidence)
        self._observed += seconds
        self._long.add(end, seconds, values)
        if not self._short.add(end, seconds, values):
            return self.verdict
        now, mean = self._observed, _mean(self._short, evidence)
        found = self._named(mean)
        if found.state is not self._answer:
            self._answer, self._answered = found.state, now
        first = self._steady is None and now >= self.hold
        lost = found.state is State.UNKNOWN and self._lost(mean)
        if first or lost or now - self._answered >= STEADY * self.hold:
            self._steady = now
            self._set(found)
        elif self._steady is not None and now - max(self._steady, self._since) >= LONG * self.hold:
            found = self._named(_mean(self._long, evidence))
            self._set(
                found._replace(reason=f"{found.reason}; mean over {LONG * self.hold:g} s: the load comes and goes")
            )
        return self.verdict

    def _set(self, found: Verdict) -> None:
        if found.state is self.verdict.state:
            self.verdict = found
        elif self._observed - self._since >= self.hold:
            self.verdict, self._since = found, self._observed

    def _named(self, mean: Evidence) -> Verdict:
        """The state held, as long as a rule of its own holds with eased limits and none before it with plain ones."""
        found, held = judge(mean, self.thresholds), self.verdict.state
        if found.state is held or held in (State.UNKNOWN, State.MIXED):
            return found
        for rule in RULES:
            if rule.state is held and rule.holds(mean, self._eased) is True:
                return Verdict(held, rule.reason.format(e=mean))
            if rule.state is not held and rule.holds(mean, self.thresholds) is True:
                return found
        return found

    def _lost(self, mean: Evidence) -> bool:
        """Whether inputs of the state held are missing: nothing supports it any more, and nothing denies it."""
        held = self.verdict.state
        return some(*(rule.holds(mean, self._eased) for rule in RULES if rule.state is held)) is None


def _mean(rolling: Rolling, newest: Evidence) -> Evidence:
    """Field by field, over the samples that have it; a field missing from most of the window is missing."""
    means = rolling.means()
    ratios: dict[str, Any] = {name: means.get(name) for name in _RATIOS}
    pipes = {name.removeprefix(_PIPE): mean for name, mean in means.items() if name.startswith(_PIPE)}
    return replace(newest, pipes=pipes, **ratios)


def _values(evidence: Evidence) -> dict[str, float]:
    values = {name: value for name in _RATIOS if (value := getattr(evidence, name)) is not None}
    values.update((_PIPE + name, value) for name, value in evidence.pipes.items())
    return values
