"""The state of every device, once per sampling window, and the seconds spent in each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from exporter.model import Entity
from exporter.state.hysteresis import HOLD, Tracker
from exporter.state.rules import Evidence, State, Verdict
from exporter.state.telling import Teller
from exporter.state.thresholds import Thresholds

# clock-event reasons that hold clocks down against the job's will (nvml.h: nvmlClocksEventReason*)
THROTTLING = frozenset({"power_cap", "hw_slowdown", "sw_thermal", "hw_thermal", "power_brake"})
LONGEST_WINDOW = 60.0  # seconds; a longer gap between windows was an outage and belongs to no state


@dataclass(frozen=True, slots=True)
class StateView:
    """One device's state in a Snapshot."""

    verdict: Verdict
    seconds: Mapping[State, float]
    throttled: Mapping[str, bool]


@dataclass(slots=True)
class _Entry:
    tracker: Tracker
    teller: Teller
    seconds: dict[State, float] = field(default_factory=dict)
    events: Mapping[str, float] = field(default_factory=dict)
    end: float | None = None


class StateStage:
    """Keeps one tracker per device."""

    def __init__(self, thresholds: Thresholds, hold: float = HOLD) -> None:
        self._thresholds = thresholds
        self._hold = hold
        self._entries: dict[Entity, _Entry] = {}

    def update(self, now: float, entity: Entity, evidence: Evidence, events: Mapping[str, float]) -> StateView:
        """One window that ended ``now``. ``events``: cumulative seconds by clock-event reason."""
        entry = self._entries.get(entity)
        if entry is None:
            entry = self._entries[entity] = _Entry(Tracker(self._thresholds, self._hold), Teller(entity))
        seconds = 0.0 if entry.end is None else now - entry.end
        if 0 < seconds <= LONGEST_WINDOW:
            verdict = entry.tracker.feed(now, seconds, evidence)
            entry.seconds[verdict.state] = entry.seconds.get(verdict.state, 0.0) + seconds
            entry.teller.update(now, verdict)
        throttled = {
            reason: total > entry.events.get(reason, 0.0)
            for reason, total in events.items()
            if total > 0 and reason in THROTTLING
        }
        entry.end, entry.events = now, dict(events)
        return StateView(entry.tracker.verdict, dict(entry.seconds), throttled)

    def keep(self, entities: frozenset[Entity]) -> None:
        """Forget all others."""
        for gone in self._entries.keys() - entities:
            del self._entries[gone]
