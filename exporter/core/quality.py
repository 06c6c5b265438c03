"""Can the profiling data of one entity be trusted? A small state machine over its samples (docs/honest-numbers.md)."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass

from exporter.fields import PROFILING
from exporter.model import Absence


class ProfilingState(enum.Enum):
    """Values of the ``state`` label of honest_gpu_profiling_state."""

    OK = "ok"
    UNSUPPORTED = "unsupported"
    NOT_PERMITTED = "not_permitted"
    LOCKED_BY_OTHER = "locked_by_other"
    PAUSED = "paused"
    STUCK_AT_ZERO = "stuck_at_zero"
    FROZEN = "frozen"
    STALE = "stale"


_WITNESSES = ("busy", "power", "temperature")
DISTRUSTED = frozenset({ProfilingState.STUCK_AT_ZERO, ProfilingState.FROZEN})
_BY_ABSENCE = (
    (Absence.NOT_PERMITTED, ProfilingState.NOT_PERMITTED),
    (Absence.LOCKED, ProfilingState.LOCKED_BY_OTHER),
    (Absence.PAUSED, ProfilingState.PAUSED),
    (Absence.BLANK, ProfilingState.PAUSED),  # blank for long means paused (DCGM: values are blank while paused)
)


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Samples after which a suspicion becomes a state. Heuristic; chosen long against false alarms."""

    stuck_samples: int = 5
    stuck_busy: float = 0.5  # the claim above which a profiling reading of exactly 0 everywhere is not possible
    frozen_samples: int = 120  # bit-identical profiling values ...
    frozen_witnesses: int = 10  # ... while busy, power or temperature moved this often
    missing_samples: int = 3


class Watch:
    """The state of one entity, fed once a batch."""

    def __init__(self, thresholds: Thresholds) -> None:
        self._limits = thresholds
        self.state = ProfilingState.UNSUPPORTED
        self._zeros = self._same = self._moved = self._missing = 0
        self._last: dict[str, float] = {}
        self._last_witness: tuple[float | None, ...] = (None,) * len(_WITNESSES)

    def feed(self, expected: bool, values: Mapping[str, float], absences: Mapping[str, Absence]) -> ProfilingState:
        """One batch: all valid ``values`` by field, why others are absent, and whether profiling is expected at all."""
        profiling = {field: value for field, value in values.items() if field in PROFILING}
        if not profiling:
            self._missing += 1
            if not expected or self._missing >= self._limits.missing_samples:
                self.state = self._without_values(expected, absences)
            return self.state
        self._missing = 0
        self._watch_zero(profiling, values.get("busy"))
        self._watch_frozen(profiling, values)
        if self._zeros >= self._limits.stuck_samples:
            self.state = ProfilingState.STUCK_AT_ZERO
        elif self._same >= self._limits.frozen_samples and self._moved >= self._limits.frozen_witnesses:
            self.state = ProfilingState.FROZEN
        else:
            self.state = ProfilingState.OK
        return self.state

    def silent(self) -> None:
        """The source said nothing for too long."""
        if self.state is not ProfilingState.UNSUPPORTED:
            self.state = ProfilingState.STALE

    def _without_values(self, expected: bool, absences: Mapping[str, Absence]) -> ProfilingState:
        reasons = {absence for field, absence in absences.items() if field in PROFILING}
        for absence, state in _BY_ABSENCE:
            if absence in reasons:
                return state
        return ProfilingState.STALE if expected and reasons - {Absence.NOT_SUPPORTED} else ProfilingState.UNSUPPORTED

    def _watch_zero(self, profiling: Mapping[str, float], busy: float | None) -> None:
        """Only sm or the engine convict: a kernel may leave every pipe at 0, but not those."""
        if any(profiling.values()) or not ("sm" in profiling or "graphics_engine" in profiling):
            self._zeros = 0
        elif self._zeros >= self._limits.stuck_samples:
            self._zeros += 1  # convicted: only a value other than 0 acquits, an idle claim does not
        elif busy is not None and busy >= self._limits.stuck_busy:
            self._zeros += 1
        else:
            self._zeros = 0

    def _watch_frozen(self, profiling: dict[str, float], witnesses: Mapping[str, float]) -> None:
        # one that is read less often than the others has not moved in between
        witness = tuple(map(witnesses.get, _WITNESSES, self._last_witness))
        if profiling != self._last or not any(0.0 < value < 1.0 for value in profiling.values()):
            self._same = self._moved = 0
        else:
            self._same += 1
            self._moved += witness != self._last_witness
        self._last, self._last_witness = profiling, witness
