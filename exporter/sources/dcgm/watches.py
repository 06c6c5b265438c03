"""Watches make the hostengine take samples; this makes them, and reads the samples.

A watch is refused or taken as a whole. Its samples come out of one request for all watches (latest.py); it asks for its
own history, field by field, only where the latest sample is not all that there is.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from exporter.sources.dcgm.errors import CallFailed
from exporter.sources.dcgm.groups import EntityGroup, Groups
from exporter.sources.dcgm.latest import EARLY, Interest, Key, Latest
from exporter.sources.dcgm.pace import SamplePace
from exporter.sources.dcgm.rows import Rows
from exporter.sources.dcgm.timeline import TimeLine
from exporter.sources.dcgm.values import FieldSample

SHORTEST = 0.1  # seconds: what DCGM and GPM can do
SLOWER = 1.1
"""Of the pace of reads, for means: no two samples fall between two reads, so that the latest one is all there is. Where
another client wants samples faster, new ones come at the pace of the reads, not at this one, which shows it."""
PROOFS = 3  # histories at the start, or after a short one, until the latest samples are trusted to be all


class Unread(enum.Enum):
    """What is lost with a sample that is not read before the next one comes."""

    NOTHING = enum.auto()  # instants: the next one replaces it
    TIME = enum.auto()  # means: each covers a stretch of time of its own
    EVENT = enum.auto()  # each counts, and may come at any time


@dataclass(frozen=True, slots=True)
class Terms:
    """How fields are watched. ``interval``: seconds between samples; ``pace``: seconds between reads."""

    interval: float
    pace: float
    unread: Unread

    @classmethod
    def of_means(cls, pace: float) -> Terms:
        return cls(max(SHORTEST, pace * SLOWER), pace, Unread.TIME)

    @classmethod
    def of_instants(cls, pace: float) -> Terms:
        return cls(max(SHORTEST, pace), pace, Unread.NOTHING)

    @classmethod
    def of_events(cls, pace: float) -> Terms:
        return cls(max(SHORTEST, pace), pace, Unread.EVENT)


class Watch:
    """Some fields of the entities of one group, watched from construction until ``stop``."""

    def __init__(
        self, groups: Groups, group: EntityGroup, ids: Sequence[int], terms: Terms, since: int, latest: Latest | None
    ) -> None:
        """``since``: the time at the hostengine; samples from before it are other clients'. ``latest``: None for a
        watch that is not to be read.

        Raises CallFailed: then nothing of it is watched.
        """
        self.ids = tuple(ids)
        self.terms = terms
        self.crowded: float | None = None
        """Seconds between samples, where another client wants them faster than this one."""
        self._groups, self._group, self._latest = groups, group, latest
        self._interest = Interest(group.kind, group.numbers, self.ids, terms.pace)
        self._fields = groups.hold_fields(self.ids)
        self._pace = SamplePace(terms.interval)
        self._begun = self._since = since
        self._seen: dict[Key, int] = {}
        self._overdue: frozenset[Key] = frozenset()
        self._proofs = PROOFS if terms.unread is Unread.TIME else 1
        self._read_at = float("-inf")
        self._last: Mapping[Key, FieldSample] | None = None
        self._rows = Rows(groups.session)
        self._keys = tuple((number, id_) for number in group.numbers for id_ in self.ids)
        interval_us, keep = round(terms.interval * 1e6), _keep(terms.interval)
        try:
            groups.session.call("dcgmWatchFields", group.handle, self._fields, interval_us, keep, 0)
        except CallFailed:
            groups.release_fields(self.ids)
            raise
        if latest is not None:
            latest.join(self._interest)

    def stop(self) -> None:
        """Call once; also if another client has ended the watch. Raises CallFailed only for a lost connection."""
        if self._latest is not None:
            self._latest.leave(self._interest)
        try:
            self._groups.session.call("dcgmUnwatchFields", self._group.handle, self._fields)
        except CallFailed as failure:
            if failure.connection_lost:
                raise
        self._groups.release_fields(self.ids)

    def read(self, line: TimeLine) -> list[FieldSample]:
        """All rows since the last read, oldest first within a field. ``line`` is measured where it can be.

        Raises CallFailed; what was returned until then comes again at the next read.
        """
        assert self._latest is not None
        latest = self._latest.rows(self._interest)
        if latest is None or self._proofs:
            if line.now - self._read_at < EARLY * self.terms.pace:
                return []
            self._read_at = line.now
            return self._history(self._since, line)
        if latest is self._last:
            return []
        self._last, self._read_at = latest, line.now
        return self._newest(latest, line)

    def _newest(self, latest: Mapping[Key, FieldSample], line: TimeLine) -> list[FieldSample]:
        """The latest samples if they are new, and those before them if some may be missing."""
        fresh: list[FieldSample] = []
        behind: list[int] = []  # times of the samples after which some may be missing
        overdue: set[Key] = set()
        now, seen, regular = line.hostengine, self._seen, self._pace.regular
        means, events = self.terms.unread is Unread.TIME, self.terms.unread is Unread.EVENT
        for key in self._keys:
            row = latest.get(key)
            if row is None:
                continue
            before = seen.get(key)
            if row.status != 0 or row.time == before or row.time < self._begun:
                if self._pace.overdue(before or self._begun, now):
                    overdue.add(key)
                if row.status != 0:
                    fresh.append(row)
                continue
            fresh.append(row)
            if events or (means and before is not None and not regular(before, row.time)):
                behind.append(before or self._begun)
        new_overdue, self._overdue = overdue - self._overdue, frozenset(overdue)
        if new_overdue and not events:  # only the history has the reason, and returns it once
            behind += [self._seen.get(key, self._begun) for key in new_overdue]
        if not behind:
            self._note(fresh)
            return fresh
        assert self._latest is not None
        if not self._latest.budget.allows:
            fresh = [row._replace(first=True) if row.status == 0 else row for row in fresh]
            self._note(fresh)
            return fresh
        return self._history(min(behind) + 1, line, fresh)

    def _history(self, since: int, line: TimeLine, newest: Iterable[FieldSample] = ()) -> list[FieldSample]:
        """Every row since then that was not returned yet, and those of ``newest`` that are not among them."""
        begun = line.now
        self._rows.take()
        session, function = self._groups.session, "dcgmGetValuesSince_v2"
        self._since = session.call(function, self._group.handle, self._fields, since, self._rows.callback, None)
        if self._since < since:  # the hostengine's clock was set back
            self._seen.clear()
        line.measure(self._since - 1)
        if self._latest is not None:
            self._latest.budget.spend(begun, line.now)
        rows = [row for row in self._rows.take() if row.status != 0 or row.time > self._seen.get(_key(row), 0)]
        there = {(_key(row), row.time) for row in rows}
        rows += [row for row in newest if row.status == 0 and (_key(row), row.time) not in there]
        self._judge(rows)
        self._note(rows)
        return rows

    def _judge(self, rows: Iterable[FieldSample]) -> None:
        """Judge from the distance of the samples whether the latest ones are all."""
        shortest, before = None, dict(self._seen)
        for row in rows:
            if row.status == 0:
                last = before.get(_key(row))
                if last is not None and self._pace.short(last, row.time) and row.time > last:
                    shortest = min(shortest or row.time - last, row.time - last)
                before[_key(row)] = row.time
        if self.terms.unread is Unread.TIME and shortest is not None:
            self._proofs, self.crowded = PROOFS, shortest * 1e-6
            return
        self._proofs = max(0, self._proofs - 1)
        if self._proofs == 0:
            self.crowded = None

    def _note(self, rows: Iterable[FieldSample]) -> None:
        for row in rows:
            if row.status == 0:
                self._seen[_key(row)] = row.time


def _key(row: FieldSample) -> Key:
    return row.entity, row.field


def watch_most(
    groups: Groups, group: EntityGroup, ids: Sequence[int], terms: Terms, since: int, latest: Latest | None
) -> tuple[Watch | None, dict[int, CallFailed]]:
    """Watch as many of the fields as possible; return the watch, and for each other field why not.

    DCGM takes back the whole watch when it refuses one field of it: then each is tried alone. None: not one was taken.
    Raises CallFailed where the refusal concerns no single field: a lost connection, a combination of them, ...
    """
    try:
        return Watch(groups, group, ids, terms, since, latest), {}
    except CallFailed as failure:
        if not failure.about_fields:
            raise
        if len(ids) == 1:
            return None, {ids[0]: failure}
        refused = _refused_alone(groups, group, ids, terms, since)
    accepted = [field for field in ids if field not in refused]
    return (Watch(groups, group, accepted, terms, since, latest) if accepted else None), refused


def _refused_alone(
    groups: Groups, group: EntityGroup, ids: Sequence[int], terms: Terms, since: int
) -> dict[int, CallFailed]:
    refused: dict[int, CallFailed] = {}
    for field in ids:
        try:
            Watch(groups, group, (field,), terms, since, None).stop()
        except CallFailed as failure:
            if not failure.about_fields:
                raise
            refused[field] = failure
    return refused


def _keep(interval: float) -> float:
    """Seconds for which the hostengine keeps samples: longer than its calls can hang (60 to 120 s) at 1 Hz; less at
    higher rates, where it would keep very many."""
    return min(max(30.0, 150 * interval), 600.0)
