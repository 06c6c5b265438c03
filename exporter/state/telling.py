"""Log lines about changes of state, a few per hour whatever the load does: the metrics have every change."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

from exporter.background.once import RateLimit, Reported
from exporter.model import Entity
from exporter.state.hysteresis import UNSEEN
from exporter.state.rules import State, Verdict

log = logging.getLogger(__name__)
MOST_SAID = 4  # lines per span and device
SPAN = 3600.0  # seconds


@dataclass(slots=True)
class Teller:
    """The log of one device: the inputs that ``unknown`` lacks once, and the number of changes not written."""

    entity: Entity
    _state: State | None = None  # None before the first
    _changes: int = 0  # since the last line
    _limit: RateLimit = field(default_factory=lambda: RateLimit(MOST_SAID, SPAN))
    _missing: Reported[str] = field(default_factory=Reported)  # reasons of unknown

    def update(self, now: float, verdict: Verdict) -> None:
        """The state after the window that ended ``now``; writes a line when it is due."""
        if verdict is UNSEEN:
            return
        before, changed = self._state, verdict.state is not self._state
        self._state = verdict.state
        self._changes += changed
        if not self._changes or not self._limit.allows(now):
            return
        if verdict.state is State.UNKNOWN and not self._missing.first(verdict.reason):
            return
        state, reason = verdict.state.value, verdict.reason
        if before is None:
            log.info("%s: %s: %s", self.entity, state, reason)
        elif changed and self._changes == 1:
            log.info("%s: %s -> %s: %s", self.entity, before.value, state, reason)
        else:
            log.info("%s: %s: %s (state changes since the last line: %d)", self.entity, state, reason, self._changes)
        self._limit.written(now)
        self._changes = 0
