"""Takes batches one by one: checks them, books them in the ledger, aligns and derives; publishes a Snapshot."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from exporter.core.align import Aligner, Interval
from exporter.core.derive import NOTHING, Honest, Inputs, honest, inputs
from exporter.core.fabric import FabricAccount
from exporter.core.ledger import HELD, Account, merged
from exporter.core.snapshot import EntityView, Snapshot, SourceView
from exporter.fields import CLAIM, PROFILING, TENSOR_PIPES
from exporter.model import Absence, Batch, Clock, Device, Entity, Problem, ProcessUse, Reading
from exporter.trust import REFUSED, THRESHOLDS, ProfilingTrust, Suspect, TrustThresholds, range_check

FORGET_AFTER = 3600.0  # seconds after which a vanished entity's counters end: bounded memory under MIG reconfiguration
_PROFILING = frozenset(PROFILING)
_MEASURED = _PROFILING | frozenset(TENSOR_PIPES)


@dataclass(slots=True)
class _EntityRecord:
    """The state of one entity."""

    device: Device
    source: str
    profiling: ProfilingTrust
    suspect: Suspect
    details: Mapping[str, str] = field(default_factory=dict)
    fields: dict[str, frozenset[str]] = field(default_factory=dict)  # source -> what it expects to deliver
    seen: dict[str, float] = field(default_factory=dict)  # source -> when it last listed the entity
    account: Account = field(default_factory=Account)
    aligner: Aligner = field(default_factory=Aligner)
    together: Aligner = field(default_factory=Aligner)
    absences: dict[str, Absence] = field(default_factory=dict)
    given: Inputs = NOTHING
    absent_at: dict[str, float] = field(default_factory=dict)  # field -> when its absence was last reported
    honest: Honest | None = None
    honest_end: float = float("-inf")
    last_sample: float | None = None


class Pipeline:
    """Owns all state between readings and Snapshot. One thread feeds it."""

    def __init__(self, clock: Clock, interval: float, thresholds: TrustThresholds = THRESHOLDS) -> None:
        self._clock = clock
        self._interval = interval
        self._last: dict[str, float] = {}  # source -> end of its last batch
        self._pace: dict[str, float] = {}  # source -> the shorter of its last two gaps: an outage does not slow it
        self._gap: dict[str, float] = {}
        self._thresholds = thresholds
        self._entries: dict[Entity, _EntityRecord] = {}
        self._present: dict[str, frozenset[Entity]] = {}  # source -> entities in its last batch
        self._boards: set[str] = set()
        self._rejected: Counter[tuple[str, str]] = Counter()
        self._problems: dict[str, tuple[Problem, ...]] = {}
        self._processes: dict[str, tuple[ProcessUse, ...]] = {}
        self._fabric = FabricAccount()
        self._ended: set[str] = set()
        self._number = 0

    def absorb(self, batch: Batch) -> None:
        """Take in one batch. Readings of entities that the batch does not list are ignored."""
        self._problems[batch.source] = tuple(batch.problems)
        if batch.processes is None:
            self._processes.pop(batch.source, None)
        else:
            self._processes[batch.source] = tuple(batch.processes)
        self._rejected.update(batch.rejected)
        if batch.fabric is not None:
            self._rejected.update(self._fabric.absorb(batch.source, batch.fabric))
        if batch.final:
            self._ended.add(batch.source)
        gap = batch.end - self._last.get(batch.source, batch.end)
        self._pace[batch.source] = min(gap, self._gap.get(batch.source, gap))
        self._gap[batch.source], self._last[batch.source] = gap, batch.end
        self._present[batch.source] = frozenset(device.entity for device in batch.devices)
        readings: dict[Entity, list[Reading]] = {device.entity: [] for device in batch.devices}
        for reading in batch.readings:
            if reading.entity in readings:
                readings[reading.entity].append(reading)
        for device in batch.devices:
            if batch.final and not readings[device.entity]:
                continue  # time has ended for it: the last window stays the last
            self._absorb(batch, device, readings[device.entity])

    def failed(self, source: str, problem: Problem) -> None:
        """A read failed as a whole: its last windows are no longer current, its counters stay."""
        self._problems[source] = (problem,)
        self._processes.pop(source, None)
        self._fabric.failed(source)
        for entity in self._present.get(source, ()):
            entry = self._entries[entity]
            entry.account.windows.pop(source, None)
            entry.honest = None
            if entry.source == source:
                entry.profiling.silent()

    def publish(self, sources: Iterable[SourceView] = ()) -> Snapshot:
        """The state as of now."""
        now, timestamp = self._clock.monotonic(), self._clock.timestamp()
        self._forget(now)
        self._number += 1
        views = tuple(self._view(entry, now, timestamp) for _, entry in sorted(self._entries.items(), key=_order))
        present = {view.device.entity.uuid for view in views if view.present}
        return Snapshot(
            number=self._number,
            timestamp=timestamp,
            time=now,
            entities=views,
            sources=tuple(sources),
            rejected=dict(self._rejected),
            problems=tuple(problem for problems in self._problems.values() for problem in problems),
            expected_gpus=len(self._boards),
            present_gpus=len(present),
            fabric=self._fabric.view(now),
            processes=tuple(p for each in self._processes.values() for p in each) if self._processes else None,
        )

    def _absorb(self, batch: Batch, device: Device, readings: list[Reading]) -> None:
        entry = self._entry(batch, device)
        valid = self._checked(entry, device, readings, batch.end)
        values = {reading.field: reading.value for reading in valid if reading.value is not None}
        expected = not device.fields.isdisjoint(PROFILING)
        if readings and (expected or entry.source == batch.source):
            entry.profiling.feed(expected, values, entry.absences)
            if entry.profiling.state.distrusted:
                valid = self._without_profiling(entry, valid, batch.end)
        reported = self._reported(entry)
        given, measured = self._inputs(entry.device, reported), reported & _PROFILING
        entry.given = given
        booked = entry.account.book(batch.source, batch.end, valid, absent=entry.absences)
        self._align(entry, booked, given.required, measured)
        window = entry.account.windows[batch.source]
        if window.means or window.instants:
            entry.last_sample = batch.end
        entry.suspect.feed(batch.end, window.means, entry.device.model)
        _, processes = window.instants.get("processes", (None, None))
        self._derive(entry, given, measured, processes)

    def _entry(self, batch: Batch, device: Device) -> _EntityRecord:
        entry = self._entries.get(device.entity)
        if entry is None:
            trust, suspect = ProfilingTrust(self._thresholds), Suspect(self._thresholds)
            entry = _EntityRecord(device, batch.source, trust, suspect, batch.details)
            self._entries[device.entity] = entry
            self._boards.add(device.entity.uuid)
        entry.fields[batch.source] = device.fields
        entry.seen[batch.source] = batch.end
        if entry.source == batch.source:
            entry.device, entry.details = device, batch.details
        return entry

    def _checked(self, entry: _EntityRecord, device: Device, readings: list[Reading], now: float) -> list[Reading]:
        """Readings with a valid value. A board cut into instances cannot have a claim (field cases 2, 35)."""
        delivered = {reading.field for reading in readings}
        entry.absences = {
            field: absence
            for field, absence in entry.absences.items()
            if field not in device.fields or (field not in delivered and now - entry.absent_at[field] < HELD)
        }
        valid = []
        for raw in readings:
            impossible = device.mig_enabled and raw.field in CLAIM
            reading = range_check(raw._replace(value=None, absence=Absence.NOT_SUPPORTED) if impossible else raw)
            if reading.absence is not None:
                entry.absences[reading.field], entry.absent_at[reading.field] = reading.absence, now
                if reading.absence in REFUSED:
                    entry.account.rejected[(reading.field, reading.absence.value)] += 1
            if reading.value is not None:
                valid.append(reading)
        return valid

    def _without_profiling(self, entry: _EntityRecord, valid: list[Reading], now: float) -> list[Reading]:
        """Profiling values that cannot be true become absent, and are counted."""
        for reading in valid:
            if reading.field in _MEASURED:
                entry.absences[reading.field], entry.absent_at[reading.field] = Absence.STALE, now
                entry.account.rejected[(reading.field, entry.profiling.state.value)] += 1
        return [reading for reading in valid if reading.field not in _MEASURED]

    def _align(
        self, entry: _EntityRecord, booked: list[Reading], required: frozenset[str], measured: frozenset[str]
    ) -> None:
        """The means that are compared go onto the tracks."""
        for reading in booked:
            field, start, value = reading.field, reading.start, reading.value
            if start is None or value is None:
                continue
            if field in required:
                entry.aligner.add(field, start, reading.end, value)
            if field in measured:
                entry.together.add(field, start, reading.end, value)

    def _derive(self, entry: _EntityRecord, given: Inputs, measured: frozenset[str], processes: float | None) -> None:
        intervals = entry.aligner.cut(given.required) if given.required else []
        numbers = [(interval, made) for interval in intervals if (made := honest(given, interval.means))]
        for interval, made in numbers:
            entry.account.book_honest(interval.seconds, made)
            active = "sm" if "sm" in interval.means else given.claim
            if active:
                entry.account.book_activity(interval.means[active], interval.seconds, processes)
        if numbers:
            entry.honest, entry.honest_end = _mean(given, numbers), numbers[-1][0].end
        for interval in entry.together.cut(measured) if measured else ():
            entry.account.book_together("measurement", interval.seconds)

    def _reported(self, entry: _EntityRecord) -> frozenset[str]:
        """Fields that some source expects to deliver, less those whose absence is definitive."""
        every: frozenset[str] = frozenset().union(*entry.fields.values())
        ruled_out = [field for field, absence in entry.absences.items() if absence.definitive]
        return every.difference(ruled_out) if ruled_out else every

    def _inputs(self, device: Device, reported: frozenset[str]) -> Inputs:
        return inputs(reported, mig=device.mig_enabled or device.entity.gpu_instance is not None)

    def _view(self, entry: _EntityRecord, now: float, timestamp: float) -> EntityView:
        entity, ended = entry.device.entity, entry.source in self._ended
        present = any(entity in listed for listed in self._present.values())
        oldest = float("-inf") if ended else now - self._patience(entry) if present else float("inf")
        means, instants, latest = merged(entry.account.windows, oldest)
        if not ended and present and latest is None and entry.last_sample is not None:
            entry.profiling.silent()
        given = entry.given
        current = entry.honest_end >= oldest
        return EntityView(
            device=entry.device,
            source=entry.source,
            details=entry.details,
            present=present,
            form=given.form,
            claim=given.claim,
            parts=given.parts,
            means=means,
            instants=instants,
            honest=entry.honest if current and given.required.isdisjoint(entry.absences) else None,
            totals=entry.account.totals.copy(),
            absences=dict(entry.absences),
            profiling=entry.profiling.state if present else entry.profiling.state.when_silent,
            last_sample=None if entry.last_sample is None else timestamp - (now - entry.last_sample),
            fields=frozenset().union(*entry.fields.values()),
            rejected=dict(entry.account.rejected),
            suspects=entry.suspect.fields.intersection(means),
        )

    def _patience(self, entry: _EntityRecord) -> float:
        """Seconds after which a window is no longer current: three times the pace of the slowest source."""
        return 3 * max(self._interval, *(self._pace.get(source, 0.0) for source in entry.fields)) + 1.0

    def _forget(self, now: float) -> None:
        for entity in [e for e, entry in self._entries.items() if now - max(entry.seen.values()) > FORGET_AFTER]:
            if self._entries[entity].source not in self._ended:
                del self._entries[entity]


def _order(item: tuple[Entity, _EntityRecord]) -> tuple[int, str, str, int]:
    entity, entry = item
    index = entry.device.index
    instance = -1 if entity.gpu_instance is None else entity.gpu_instance
    return (int(index) if index.isdigit() else 1 << 30, index, entity.uuid, instance)


def _mean(given: Inputs, numbers: list[tuple[Interval, Honest]]) -> Honest:
    """The honest numbers of a window that was split: means weighed by time, the limiter of the mean inputs."""
    if len(numbers) == 1:
        return numbers[0][1]
    total = sum(interval.seconds for interval, _ in numbers)

    def weigh(values: Iterable[tuple[float, float]]) -> float:
        return sum(seconds * value for seconds, value in values) / total

    means = {f: weigh((i.seconds, i.means[f]) for i, _ in numbers) for f in given.required}
    whole = honest(given, means)
    assert whole is not None
    parts = {part: weigh((i.seconds, h.parts[part]) for i, h in numbers) for part in whole.parts}
    return replace(whole, parts=parts, utilization=parts.get("working"))
