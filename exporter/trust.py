"""When a value is not believed: pure rules, one vocabulary, one table of thresholds (docs/honest-numbers.md).

- blank: DCGM's mark for "no value", with the reason for it.
- out_of_range: outside the range in fields.py, or not a number.
- stuck_at_zero: all of profiling is exactly 0 while the driver reports that the GPU is busy.
- frozen: profiling stays the same to the last bit while power, temperature or the claim moves.
- contradicted: a rate of exactly 0 while another counter of the same link moves.
- suspect: PCIe is exactly 0 in both directions while kernels run. Hard to believe, but no proof: the value stays.
- dead: a watch gives nothing but blanks or such zeros, and is worth making again.

Rules get values and times; they read nothing and have no clock.
"""

from __future__ import annotations

import enum
import math
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from dataclasses import field as _field
from typing import TypeVar

from exporter.fields import FIELDS, PROFILING, Field, Kind
from exporter.model import Absence, Reading

_Number = TypeVar("_Number", int, float)


def _limit(value: _Number, why: str) -> _Number:
    made: _Number = _field(default=value, metadata={"why": why})
    return made


@dataclass(frozen=True, slots=True)
class TrustThresholds:
    """All thresholds of the rules, each with its reason. Samples and reads in a row, seconds, ratios 0..1."""

    stuck_samples: int = _limit(5, "heuristic: chosen long against false alarms")
    stuck_busy: float = _limit(0.5, "the claim above which profiling of exactly 0 is not possible")
    frozen_samples: int = _limit(120, "heuristic: a steady load repeats a value, hardly all of them for minutes")
    frozen_moves: int = _limit(10, "of power, temperature or the claim meanwhile: once may be chance")
    missing_samples: int = _limit(3, "reads without profiling: one or two are a hiccup, not a state")
    dead_reads: int = _limit(5, "heuristic: a watch that is made again loses its first samples")
    dead_seconds: float = _limit(5.0, "the claim looks back for up to a second: five fast reads are no proof")
    silent_intervals: float = _limit(5.0, "intervals of a watch without a sample: a busy hostengine may miss some")
    contradictions: int = _limit(5, "the two counters are not read at the same moment: once may be chance")
    pcie_moved: float = _limit(1e6, "bytes per second: GPM counts in MiB/s and may round less to 0")
    nvlink_moved: float = _limit(10.0, "of DCGM field 449, roughly MB/s: GPM counts in MiB/s and may round less to 0")
    agreements: int = _limit(3, "windows in which two counters agree: once may be chance")
    agreement_tolerance: float = _limit(0.2, "share of the rate: both count over nearly, not exactly, the same window")
    suspect_sm: float = _limit(0.05, "SM active above which kernels run for sure")
    suspect_seconds: float = _limit(300.0, "heuristic: a kernel may run for minutes without a byte over PCIe")
    suspect_gap: float = _limit(60.0, "seconds; a longer gap between windows is an outage and adds no more than this")


THRESHOLDS = TrustThresholds()


# --- one value --------------------------------------------------------------------------------------------------------

_BLANK_REASONS = (Absence.BLANK, Absence.NOT_FOUND, Absence.NOT_SUPPORTED, Absence.NOT_PERMITTED)
_ZERO_WITHOUT_SENSOR = frozenset({"memory_temperature"})

REFUSED = frozenset({Absence.NOT_A_NUMBER, Absence.OUT_OF_RANGE, Absence.OVERLAP, Absence.STALE, Absence.CONTRADICTED})
"""Absences that mean 'a value came and was refused'; the others mean that none came."""


def blank_reason(offset: float) -> Absence:
    """Why there is no value, from how far a blank lies above the lowest blank of its type (dcgm_structs.h)."""
    known = offset in range(len(_BLANK_REASONS))
    return _BLANK_REASONS[int(offset)] if known else Absence.BLANK


def zero_without_sensor(field: str, value: float) -> bool:
    """Whether this 0 means that the board has no such sensor."""
    return value == 0 and field in _ZERO_WITHOUT_SENSOR


def range_fault(spec: Field, value: float) -> Absence | None:
    """Why the value cannot be one of this field: NOT_A_NUMBER, OUT_OF_RANGE, or None where it can."""
    if not math.isfinite(value):
        return Absence.NOT_A_NUMBER
    return None if spec.low <= value <= spec.high else Absence.OUT_OF_RANGE


def rounded(spec: Field, value: float) -> float:
    """A valid value; of ratios, those between 1 and fields.ROUNDING count as 1."""
    return 1.0 if value > 1.0 and spec.kind is Kind.RATIO else value


def range_check(reading: Reading) -> Reading:
    """The reading, its value ``rounded``; or the same one without a value and with the reason why it was refused."""
    value = reading.value
    if value is None:
        return reading if reading.absence is not None else reading._replace(absence=Absence.NO_DATA)
    spec = FIELDS[reading.field]
    fault = range_fault(spec, value)
    if fault is None and reading.start is not None and reading.start >= reading.end:
        fault = Absence.OVERLAP
    if fault is not None:
        return reading._replace(value=None, absence=fault)
    fit = rounded(spec, value)
    return reading if fit == value else reading._replace(value=fit)


# --- profiling of one entity ------------------------------------------------------------------------------------------

_NEVER_ZERO = frozenset({"sm", "graphics_engine"})  # while a kernel runs; it may leave every pipe at 0, but not these
_MOVING = ("busy", "power", "temperature")


def _all_zero(profiling: Collection[tuple[str, float]]) -> bool:
    """Whether (field, value) are all 0, those among them that cannot be while a kernel runs."""
    return not any(value for _, value in profiling) and any(field in _NEVER_ZERO for field, _ in profiling)


def _busy(claim: float | None, thresholds: TrustThresholds) -> bool:
    return claim is not None and claim >= thresholds.stuck_busy


class StuckAtZero:
    """Fed once a sample. Once it holds, only a value other than 0 ends it: an idle claim does not."""

    def __init__(self, thresholds: TrustThresholds = THRESHOLDS) -> None:
        self._limits = thresholds
        self._samples = 0

    @property
    def holds(self) -> bool:
        """Whether the zeros are false."""
        return self._samples >= self._limits.stuck_samples

    def feed(self, profiling: Collection[tuple[str, float]], claim: float | None) -> None:
        """(field, value) of profiling, and the claim of the same time."""
        impossible = _all_zero(profiling) and (self.holds or _busy(claim, self._limits))
        self._samples = self._samples + 1 if impossible else 0


class Frozen:
    """Fed once a sample. Values of 0 and 1 prove nothing: an idle or a full GPU repeats them."""

    def __init__(self, thresholds: TrustThresholds = THRESHOLDS) -> None:
        self._limits = thresholds
        self._same = self._moves = 0
        self._profiling: Mapping[str, float] = {}
        self._moving: tuple[float | None, ...] = (None,) * len(_MOVING)

    @property
    def holds(self) -> bool:
        """Whether the values are old ones."""
        return self._same >= self._limits.frozen_samples and self._moves >= self._limits.frozen_moves

    def feed(self, profiling: Mapping[str, float], values: Mapping[str, float]) -> None:
        """Profiling, and all values of the same time."""
        # one that is read less often than the others has not moved in between
        moving = tuple(map(values.get, _MOVING, self._moving))
        if profiling != self._profiling or not any(0.0 < value < 1.0 for value in profiling.values()):
            self._same = self._moves = 0
        else:
            self._same += 1
            self._moves += moving != self._moving
        self._profiling, self._moving = profiling, moving


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

    @property
    def when_silent(self) -> ProfilingState:
        """The state when the source delivers nothing any more."""
        return self if self is ProfilingState.UNSUPPORTED else ProfilingState.STALE

    @property
    def distrusted(self) -> bool:
        """Whether values come that are not to be used."""
        return self in (ProfilingState.STUCK_AT_ZERO, ProfilingState.FROZEN)


_BY_ABSENCE = (
    (Absence.NOT_PERMITTED, ProfilingState.NOT_PERMITTED),
    (Absence.LOCKED, ProfilingState.LOCKED_BY_OTHER),
    (Absence.PAUSED, ProfilingState.PAUSED),
    (Absence.BLANK, ProfilingState.PAUSED),  # blank for long means paused (DCGM: values are blank while paused)
)


class ProfilingTrust:
    """The state of one entity's profiling, fed once a batch."""

    def __init__(self, thresholds: TrustThresholds = THRESHOLDS) -> None:
        self._limits = thresholds
        self.state = ProfilingState.UNSUPPORTED
        self._stuck, self._frozen = StuckAtZero(thresholds), Frozen(thresholds)
        self._missing = 0

    def feed(self, expected: bool, values: Mapping[str, float], absences: Mapping[str, Absence]) -> ProfilingState:
        """One batch: all valid ``values`` by field, why others are absent, and whether profiling is expected at all."""
        profiling = {field: value for field, value in values.items() if field in PROFILING}
        if not profiling:
            self._missing += 1
            if not expected or self._missing >= self._limits.missing_samples:
                self.state = _without_values(expected, absences)
            return self.state
        self._missing = 0
        self._stuck.feed(profiling.items(), values.get("busy"))
        self._frozen.feed(profiling, values)
        if self._stuck.holds:
            self.state = ProfilingState.STUCK_AT_ZERO
        else:
            self.state = ProfilingState.FROZEN if self._frozen.holds else ProfilingState.OK
        return self.state

    def silent(self) -> None:
        """The source delivered nothing for too long."""
        self.state = self.state.when_silent


def _without_values(expected: bool, absences: Mapping[str, Absence]) -> ProfilingState:
    reasons = {absence for field, absence in absences.items() if field in PROFILING}
    for absence, state in _BY_ABSENCE:
        if absence in reasons:
            return state
    return ProfilingState.STALE if expected and reasons - {Absence.NOT_SUPPORTED} else ProfilingState.UNSUPPORTED


class Dead:
    """Whether a watch of profiling is dead, fed once a read. Unlike StuckAtZero it takes blanks and silence for it."""

    def __init__(self, thresholds: TrustThresholds = THRESHOLDS) -> None:
        self._limits = thresholds
        self._reads = 0
        self._alive = -math.inf  # when it was last alive

    def holds(self, now: float) -> bool:
        """Whether the watch has been dead for long."""
        return self._reads >= self._limits.dead_reads and now - self._alive >= self._limits.dead_seconds

    def feed(self, profiling: Collection[tuple[str, float]], claim: float | None, now: float, *, silent: bool) -> None:
        """(field, value) of one read, and the claim of the same time. ``silent``: blank, or no sample for too long."""
        if any(value for _, value in profiling):
            self.revived(now)
        elif silent or (_all_zero(profiling) and _busy(claim, self._limits)):
            self._reads += 1
        elif profiling:
            self.revived(now)

    def revived(self, now: float) -> None:
        """The watch is alive, or there is a known reason for its silence."""
        self._reads, self._alive = 0, now


# --- links ------------------------------------------------------------------------------------------------------------


class Contradiction:
    """Rates of one link against another counter of it. Once it holds, only a value other than 0 ends it."""

    def __init__(self, thresholds: TrustThresholds = THRESHOLDS) -> None:
        self._limits = thresholds
        self._times = 0

    @property
    def holds(self) -> bool:
        """Whether zeros are false."""
        return self._times >= self._limits.contradictions

    def feed(self, rates: Collection[float], moved: bool) -> None:
        """``rates`` over a stretch of time; ``moved``: whether the other counter did, over the same."""
        if any(rates):
            self._times = 0
        elif rates and not self.holds:
            self._times = self._times + 1 if moved else 0


def contradicted(reading: Reading) -> Reading:
    """The reading of a false zero, without it."""
    return reading._replace(value=None, start=None, absence=Absence.CONTRADICTED)


class Agreement:
    """Whether a counter whose unit is not known for sure counts what a rate of the same link says (bytes a second)."""

    def __init__(self, thresholds: TrustThresholds = THRESHOLDS) -> None:
        self._limits = thresholds
        self._times = 0

    @property
    def holds(self) -> bool:
        """Whether the counter may be used."""
        return self._times >= self._limits.agreements

    def feed(self, counted: float, rate: float) -> None:
        """Both over the same window. One without traffic proves nothing."""
        if max(counted, rate) >= self._limits.pcie_moved:
            agree = abs(counted - rate) <= self._limits.agreement_tolerance * rate
            self._times = min(self._times + 1, self._limits.agreements) if agree else 0


_PCIE = ("pcie_transmit", "pcie_receive")
_BESIDE_ITS_CPU = re.compile(r"\bG[BH]\d")  # GH200, GB200: NVLink-C2C carries what PCIe does elsewhere


class Suspect:
    """PCIe of one entity at 0 while kernels run (field case 25), fed once a batch.

    A GPU gets its commands over PCIe and answers over it. NVLink at 0 says nothing: most jobs do not use it (field
    case 26).
    """

    def __init__(self, thresholds: TrustThresholds = THRESHOLDS) -> None:
        self.fields: frozenset[str] = frozenset()
        self._limits = thresholds
        self._seconds = 0.0
        self._last: float | None = None

    def feed(self, end: float, means: Mapping[str, float], model: str) -> None:
        """The means of the window that ends at ``end``. Idle windows neither add nor acquit: an idle link is 0."""
        rates = [means[field] for field in _PCIE if field in means]
        if not rates:
            return
        limits = self._limits
        if any(rates) or _BESIDE_ITS_CPU.search(model):
            self._seconds, self.fields = 0.0, frozenset()
        elif len(rates) == len(_PCIE) and means.get("sm", 0.0) > limits.suspect_sm and self._last is not None:
            self._seconds += min(end - self._last, limits.suspect_gap)
            if self._seconds >= limits.suspect_seconds:
                self.fields = frozenset(_PCIE)
        self._last = end
