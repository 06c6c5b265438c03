"""NVSwitches and Grace CPUs. Watched where the hostengine lists them, at a long interval.

Only the latest samples are read: there is one per interval, and those of errors carry the time of another clock. The
throughput of switches (861, 862) is left out: its unit is documented nowhere and differs between DCGM's two libraries
for switches, and it has been seen at 0 under load (NVIDIA/DCGM issue 236).
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from exporter.fields import PART_FIELDS, Kind
from exporter.model import Part, PartKind, PartReading
from exporter.sources.dcgm.errors import CallFailed, Code
from exporter.sources.dcgm.groups import EntityGroup, Groups
from exporter.sources.dcgm.session import CPU, SWITCH
from exporter.sources.dcgm.timeline import TimeLine
from exporter.sources.dcgm.tracks import PATIENCE
from exporter.sources.dcgm.values import blank_of
from exporter.sources.dcgm.watches import Terms, Unread, Watch, watch_most

log = logging.getLogger(__name__)
FATAL, NON_FATAL = 856, 857  # DCGM_FI_DEV_SXID_FATAL_ERROR, _NON_FATAL_ERROR
_NONE = (0, 0)


class Sxids:
    """Finds which SXid errors of NVSwitches are new. Kept as long as the source: a hostengine that restarts reports old
    errors again.

    DCGM samples a fatal error again and again while it lasts, with the time of the sample. The last non-fatal error
    comes with the time of the error, in NSCQ's unit. So a code is new if it was not there before, and a non-fatal one
    also if its time differs. Two errors with the same code between two reads count as one.
    """

    def __init__(self) -> None:
        self._last: dict[tuple[int, int], tuple[int, int]] = {}

    def nothing(self, switch: int, field: int, *, known: bool) -> None:
        """One read without an error. ``known``: the hostengine has a sample; else it may not have taken one yet."""
        key = (switch, field)
        if known and field == FATAL:
            self._last[key] = _NONE
        else:
            self._last.setdefault(key, _NONE)

    def new(self, switch: int, field: int, code: int, time: int) -> bool:
        """Whether the error of one read is new. At the first read, a fatal error is new and a non-fatal one is not."""
        key, error = (switch, field), (code, time if field == NON_FATAL else 0)
        before = self._last.get(key)
        self._last[key] = error
        return error != before and (field == FATAL or before is not None)


LIST_INTERVAL = 60.0  # seconds between discoveries: the fabric manager may start late ...
REFUSED_INTERVAL = 600.0  # ... and where the hostengine has no such thing, or fails
_FASTER = 0.9  # of the interval between reads: each read finds a new sample
_RAILS = {705: "vdd", 706: "dvdd", 707: "hvdd"}


class _Spec(NamedTuple):
    field: str
    label: str = ""


_BY_ID = {spec.dcgm: _Spec(name) for name, spec in PART_FIELDS.items() if spec.dcgm is not None}
_RAIL_SPECS = {id_: _Spec("nvswitch_power", rail) for id_, rail in _RAILS.items()}
_SPECS: Mapping[int, _Spec] = {**_BY_ID, **_RAIL_SPECS}


def _ids(kind: PartKind) -> tuple[int, ...]:
    return tuple(id_ for id_, spec in _SPECS.items() if spec.field.startswith(f"{kind.value}_"))


class Parts:
    """All parts of one kind that one hostengine has."""

    def __init__(self, kind: PartKind, groups: Groups, interval: float, sxids: Sxids) -> None:
        self._kind = kind
        self._entity_kind = SWITCH if kind is PartKind.NVSWITCH else CPU
        self._groups, self._sxids = groups, sxids
        self._terms = Terms(interval * _FASTER, interval, Unread.NOTHING)
        self._numbers: tuple[int, ...] = ()
        self._group: EntityGroup | None = None
        self._watch: Watch | None = None
        self._list_at = float("-inf")
        self._ends: dict[tuple[int, int], float] = {}  # (number, field id) -> end of the last sample

    @property
    def parts(self) -> Sequence[Part]:
        return [Part(self._kind, number) for number in self._numbers]

    def read(self, line: TimeLine) -> list[PartReading]:
        """New values of all fields, in base units. Raises CallFailed for a lost connection."""
        try:
            if line.now >= self._list_at:
                self._list_at = line.now + LIST_INTERVAL
                self._find()
            return list(self._read_latest(line)) if self._watch is not None else []
        except CallFailed as failure:
            if failure.connection_lost:
                raise
            log.debug("no %s is watched: %s", self._kind.value, failure)
            self._list_at = line.now + REFUSED_INTERVAL
            self._drop()
            return []

    def _find(self) -> None:
        """Make the watch again if the hostengine lists others than before."""
        listed = self._groups.session.call("dcgmGetEntityGroupEntities", self._entity_kind, 0)
        numbers = tuple(sorted(int(number) for number in listed))
        if numbers == self._numbers:
            return
        self._drop()
        self._numbers = numbers
        if numbers:
            self._group = self._groups.of_entities(self._entity_kind, numbers)
            self._watch, _ = watch_most(self._groups, self._group, _ids(self._kind), self._terms, 0, None)

    def _read_latest(self, line: TimeLine) -> Iterator[PartReading]:
        assert self._watch is not None
        pairs = []
        for number in self._numbers:
            pair = self._groups.session.bindings.structs.c_dcgmGroupEntityPair_t()
            pair.entityGroupId, pair.entityId = self._entity_kind, number
            pairs.append(pair)
        rows = self._groups.session.call("dcgmEntitiesGetLatestValues", pairs, list(self._watch.ids), 0)
        if any(row.status == Code.NOT_WATCHED for row in rows):  # another client has ended the watch
            raise CallFailed("dcgmEntitiesGetLatestValues", Code.NOT_WATCHED, "the fields are no longer watched")
        for row in rows:
            number, id_, status = int(row.entityId), int(row.fieldId), int(row.status)
            value = float(row.value.dbl) if row.fieldType == ord("d") else int(row.value.i64)
            known = status == 0 and blank_of(id_, value) is None
            if PART_FIELDS[_SPECS[id_].field].kind is Kind.EVENT:
                yield from self._error(number, id_, int(value) if known else 0, int(row.ts), line)
            elif known:
                yield from self._value(number, id_, value, line.place(int(row.ts)), line.now)

    def _error(self, number: int, id_: int, code: int, time: int, line: TimeLine) -> Iterator[PartReading]:
        """``time`` 0: the hostengine has no sample. A fatal error that it no longer samples is over."""
        over = id_ == FATAL and time > 0 and line.now - line.place(time) > PATIENCE * self._terms.interval
        if code == 0 or over:
            self._sxids.nothing(number, id_, known=time > 0)
        elif self._sxids.new(number, id_, code, time):
            yield PartReading(Part(self._kind, number), _SPECS[id_].field, line.now, 1.0, label=str(code))

    def _value(self, number: int, id_: int, value: float, end: float, now: float) -> Iterator[PartReading]:
        name, label = _SPECS[id_]
        part = Part(self._kind, number)
        if now - end > PATIENCE * self._terms.interval:
            return
        if PART_FIELDS[name].kind is not Kind.RATIO:
            yield PartReading(part, name, end, value, label=label)
            return
        before = self._ends.get((number, id_))
        self._ends[number, id_] = end
        if before is not None and end > before:  # one that was never seen in between has another mean
            yield PartReading(part, name, end, value, max(before, end - self._terms.interval))

    def _drop(self) -> None:
        watch, group = self._watch, self._group
        self._watch, self._group, self._numbers = None, None, ()
        self._ends.clear()
        if watch is not None:
            watch.stop()
        if group is not None:
            self._groups.drop_entities(group)
