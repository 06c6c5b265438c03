"""The account of one entity: its counters (seconds, bytes, joules, counts), which only grow, and its last window.

Seconds of a field are its mean times its interval; the denominator grows by the same interval, so that their ratio is
unbiased however often the field drops out.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field

from exporter.core.derive import Honest
from exporter.fields import FIELDS, Kind
from exporter.model import Absence, Reading

BUCKETS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0)  # upper bounds of sm_active_distribution
NOTHING = 0.005  # SM active (or engine, or claim) up to here is "did nothing"; above the noise of the counters
STALL_SAMPLES = 2
HELD = 0.95  # seconds an instant stays current: sampling faster than once a second reads some fields once a second only
CURRENT_LENGTHS = 1.5  # lengths of a window for which it stays current: the next is due one length after its end
HOLD_LIMIT = 10.0  # seconds an instant (power, a clock event) may count for the time before it; longer is an outage


@dataclass(slots=True)
class EntityTotals:
    """Monotonic since the daemon started. Keys are field names, parts, limiters or labels."""

    seconds: dict[str, float] = field(default_factory=dict)  # RATIO fields: integral
    observed: dict[str, float] = field(default_factory=dict)  # denominators: field names, "measurement", "parts"
    amounts: dict[str, float] = field(default_factory=dict)  # RATE and COUNTER fields: bytes, joules, counts
    active: dict[tuple[str, str], float] = field(default_factory=dict)  # (field, label) -> seconds
    events: dict[tuple[str, str], int] = field(default_factory=dict)  # (field, label) -> count
    parts: dict[str, float] = field(default_factory=dict)
    limiters: dict[str, float] = field(default_factory=dict)
    exceeded: int = 0
    buckets: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS) + 1))
    bucket_sum: float = 0.0
    stalls: int | None = None  # None: it is not known whether a process runs
    stall_seconds: float = 0.0

    def copy(self) -> EntityTotals:
        """An independent copy, for a Snapshot."""
        return EntityTotals(
            seconds=dict(self.seconds),
            observed=dict(self.observed),
            amounts=dict(self.amounts),
            active=dict(self.active),
            events=dict(self.events),
            parts=dict(self.parts),
            limiters=dict(self.limiters),
            exceeded=self.exceeded,
            buckets=list(self.buckets),
            bucket_sum=self.bucket_sum,
            stalls=self.stalls,
            stall_seconds=self.stall_seconds,
        )


@dataclass(slots=True)
class Window:
    """Means (intervals) of one source's last batch, or of one before it whose next is not due yet, and the instants of
    the last HELD seconds."""

    end: float
    means: dict[str, float] = field(default_factory=dict)
    instants: dict[str, tuple[float, float]] = field(default_factory=dict)  # field -> (end of its batch, value)


class Account:
    """Books checked readings. Not thread safe: the pipeline's thread alone writes."""

    def __init__(self) -> None:
        self.totals = EntityTotals()
        self.windows: dict[str, Window] = {}  # by source
        self.rejected: Counter[tuple[str, str]] = Counter()
        self._until: dict[str, float] = {}  # field -> end of what is booked
        self._length: dict[str, float] = {}  # field -> seconds of the last interval booked
        self._raw: dict[str, float] = {}  # COUNTER field -> last raw value
        self._instant: dict[tuple[str, str], tuple[float, float]] = {}  # (field, label) -> (time, value)
        self._quiet: tuple[int, float] = (0, 0.0)  # samples and seconds in which nothing was done

    def book(self, source: str, end: float, readings: list[Reading], absent: Container[str] = ()) -> list[Reading]:
        """One batch of valid readings (each has a value) of one source; opens a new window for that source.

        ``absent``: fields that are known to have no value now. Returns the means that were booked, each over the time
        that was not booked before: what else is computed from them counts no stretch of time twice."""
        window = Window(end, instants=self._held(source, end, absent))
        weights: dict[str, float] = {}
        booked: list[Reading] = []
        for reading in readings:
            kind = FIELDS[reading.field].kind
            if kind is Kind.RATIO or kind is Kind.RATE:
                if (fresh := self._fresh(reading)) is not None:
                    self._integrate(fresh, kind, window, weights)
                    booked.append(fresh)
            elif kind is Kind.COUNTER:
                self._count(reading)
            elif kind is Kind.ACTIVE:
                self._hold(reading)
            elif kind is Kind.EVENT:
                key = (reading.field, reading.label)
                self.totals.events[key] = self.totals.events.get(key, 0) + int(reading.value or 0)
            else:
                window.instants[reading.field] = (end, reading.value or 0.0)
                self._power(reading)
        for name, mean in self._standing(source, end, absent):
            window.means.setdefault(name, mean)
        self.windows[source] = window
        return booked

    def _held(self, source: str, end: float, absent: Container[str]) -> dict[str, tuple[float, float]]:
        before = self.windows.get(source)
        if before is None or end - before.end >= HELD:
            return {}
        return {
            name: (read, value)
            for name, (read, value) in before.instants.items()
            if end - read < HELD and name not in absent
        }

    def _standing(self, source: str, end: float, absent: Container[str]) -> Iterator[tuple[str, float]]:
        """A source that samples a little less often than it is read has no new mean in some reads."""
        before = self.windows.get(source)
        for name, mean in before.means.items() if before is not None else ():
            if name not in absent and end - self._until[name] <= CURRENT_LENGTHS * self._length[name]:
                yield name, mean

    def _fresh(self, reading: Reading) -> Reading | None:
        """A mean over the time that is not booked yet; None where all of it is."""
        if reading.start is None or reading.value is None:
            return None  # a mean without its interval cannot be booked
        start = max(reading.start, self._until.get(reading.field, reading.start))
        if start >= reading.end:
            self.rejected[(reading.field, Absence.OVERLAP.value)] += 1
            return None
        return reading if start == reading.start else reading._replace(start=start)

    def _integrate(self, reading: Reading, kind: Kind, window: Window, weights: dict[str, float]) -> None:
        """A mean over time that is not booked yet."""
        assert reading.start is not None
        assert reading.value is not None
        seconds, name = reading.end - reading.start, reading.field
        self._until[name], self._length[name] = reading.end, seconds
        amount, totals = reading.value * seconds, self.totals
        book = totals.seconds if kind is Kind.RATIO else totals.amounts
        book[name] = book.get(name, 0.0) + amount
        totals.observed[name] = totals.observed.get(name, 0.0) + seconds
        before = weights.get(name)
        if before is None:
            window.means[name], weights[name] = reading.value, seconds
        else:
            weights[name] = before + seconds
            window.means[name] = (window.means[name] * before + amount) / (before + seconds)
        if name == "sm":
            self.totals.buckets[bisect_left(BUCKETS, reading.value)] += 1
            self.totals.bucket_sum += reading.value

    def _count(self, reading: Reading) -> None:
        """A driver's own total: increases are booked, a fall (driver reloaded) is not; counting goes on from there."""
        value = reading.value or 0.0
        before = self._raw.get(reading.field, value)
        increase = value - before
        self._raw[reading.field] = value
        if increase < 0:
            self.rejected[(reading.field, "counter_reset")] += 1
            increase = 0.0
        self.totals.amounts[reading.field] = self.totals.amounts.get(reading.field, 0.0) + increase

    def _hold(self, reading: Reading) -> None:
        """0/1 at an instant, which counts for the time since the last one, unless that was too long ago."""
        key = (reading.field, reading.label)
        before = self._instant.get(key)
        self._instant[key] = (reading.end, reading.value or 0.0)
        seconds = reading.end - before[0] if before else 0.0
        total = self.totals.active.get(key, 0.0)
        self.totals.active[key] = total + (seconds * (reading.value or 0.0) if 0 < seconds <= HOLD_LIMIT else 0.0)

    def _power(self, reading: Reading) -> None:
        """Integrate power to joules where the driver has no energy counter of its own (trapezoids)."""
        if reading.field != "power":
            return
        before = self._instant.get(("power", ""))
        self._instant[("power", "")] = (reading.end, reading.value or 0.0)
        if "energy" in self._raw or before is None:
            return
        seconds = reading.end - before[0]
        if 0 < seconds <= HOLD_LIMIT:
            joules = (before[1] + (reading.value or 0.0)) / 2 * seconds
            self.totals.amounts["energy"] = self.totals.amounts.get("energy", 0.0) + joules

    def book_together(self, of: str, seconds: float) -> None:
        """Seconds for which a whole group of fields was valid together."""
        self.totals.observed[of] = self.totals.observed.get(of, 0.0) + seconds

    def book_honest(self, seconds: float, numbers: Honest) -> None:
        """The parts and the limiter of one aligned interval."""
        self.book_together("parts", seconds)
        for part, share in numbers.parts.items():
            self.totals.parts[part] = self.totals.parts.get(part, 0.0) + share * seconds
        if numbers.limiter is not None:
            limiters = self.totals.limiters
            limiters[numbers.limiter] = limiters.get(numbers.limiter, 0.0) + seconds
        self.totals.exceeded += numbers.exceeded

    def book_activity(self, activity: float, seconds: float, processes: float | None) -> None:
        """One sample of what the GPU did; a gap of STALL_SAMPLES or more while a process holds it is a stall."""
        if processes is None:
            return
        if self.totals.stalls is None:
            self.totals.stalls = 0
        if processes < 1 or activity > NOTHING:
            self._quiet = (0, 0.0)
            return
        samples, quiet = self._quiet[0] + 1, self._quiet[1] + seconds
        if samples == STALL_SAMPLES:
            self.totals.stalls += 1
            self.totals.stall_seconds += quiet
        elif samples > STALL_SAMPLES:
            self.totals.stall_seconds += seconds
        self._quiet = (samples, quiet)


def merged(windows: Mapping[str, Window], oldest: float) -> tuple[dict[str, float], dict[str, float], float | None]:
    """Means, instants and the latest end over the windows that are not older than ``oldest``."""
    means: dict[str, float] = {}
    instants: dict[str, float] = {}
    latest: float | None = None
    for window in windows.values():
        if window.end >= oldest:
            means.update(window.means)
            instants.update((name, value) for name, (_, value) in window.instants.items())
            if window.means or window.instants:
                latest = window.end if latest is None else max(latest, window.end)
    return means, instants, latest
