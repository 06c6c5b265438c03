"""Watches: what makes the hostengine take samples, and the reading of those it has taken.

Facts about limits and names: at most 64 groups and 64 field groups in a hostengine, of all clients together; names of
field groups are unique in it; a watch is refused or taken as a whole.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import struct
import uuid
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from exporter.sources.dcgm.errors import CallFailed
from exporter.sources.dcgm.session import Session
from exporter.sources.dcgm.values import Row

SHORTEST = 0.1  # seconds: what DCGM and GPM can do
WATCHED_FASTER = 0.9  # of the interval of reads: a read never falls between two samples, which would leave it empty
_GROUP_EMPTY = 1  # DCGM_GROUP_EMPTY
_INTEGERS, _DOUBLE = frozenset({ord("i"), ord("t")}), ord("d")
ROW = struct.Struct("@IHhiqq")
"""The head of dcgmFieldValue_v1: version, field id, type, status, time, value. Read as a whole: at 10 Hz the structs of
the bindings, which look at each attribute twice, cost more than everything else."""
_FLOAT = struct.Struct("@d")
_CALLBACK = ctypes.CFUNCTYPE(
    ctypes.c_int32, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_int32, ctypes.c_void_p
)


class Groups:
    """The groups of entities and of fields that one connection made. Field groups are shared: there are few."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._name = f"honest-gpu-exporter {uuid.uuid4().hex[:12]}"
        self._numbers = itertools.count(1)
        self._fields: dict[tuple[int, ...], Any] = {}
        self._holders: Counter[tuple[int, ...]] = Counter()

    def of_entities(self, kind: int, numbers: Iterable[int]) -> Any:
        """A new group. Raises CallFailed, and leaves nothing behind then."""
        group = self.session.call("dcgmGroupCreate", _GROUP_EMPTY, self._next_name())
        try:
            for number in numbers:
                self.session.call("dcgmGroupAddEntity", group, kind, number)
        except CallFailed:
            self.drop_entities(group)
            raise
        return group

    def drop_entities(self, group: Any) -> None:
        """The group may be gone already."""
        with contextlib.suppress(CallFailed):
            self.session.call("dcgmGroupDestroy", group)

    def hold_fields(self, ids: tuple[int, ...]) -> Any:
        """The group of these fields, made for the first who needs it, gone with the last. Raises CallFailed."""
        if ids not in self._fields:
            self._fields[ids] = self.session.call("dcgmFieldGroupCreate", list(ids), self._next_name())
        self._holders[ids] += 1
        return self._fields[ids]

    def release_fields(self, ids: tuple[int, ...]) -> None:
        """What ``hold_fields`` gave."""
        self._holders[ids] -= 1
        if self._holders[ids] == 0:
            with contextlib.suppress(CallFailed):
                self.session.call("dcgmFieldGroupDestroy", self._fields.pop(ids))

    def _next_name(self) -> str:
        return f"{self._name} {next(self._numbers)}"


class Watch:
    """Some fields of the entities of one group; watched from when it is made until ``stop``."""

    def __init__(self, groups: Groups, group: Any, ids: Sequence[int], interval: float, since: int) -> None:
        """``since``: the time at the hostengine; samples from before it are other clients'.

        Raises CallFailed: then nothing of it is watched.
        """
        self.ids = tuple(ids)
        self.interval = max(SHORTEST, interval)
        self._groups, self._group = groups, group
        self._fields = groups.hold_fields(self.ids)
        self._since = since
        self._rows: list[Row] = []
        self._size = ctypes.sizeof(groups.session.bindings.structs.c_dcgmFieldValue_v1)
        self._callback = _CALLBACK(self._take)
        interval_us, keep = round(self.interval * 1e6), _keep(self.interval)
        try:
            groups.session.call("dcgmWatchFields", group, self._fields, interval_us, keep, 0)
        except CallFailed:
            groups.release_fields(self.ids)
            raise

    def stop(self) -> None:
        """Once. Also where somebody else has ended it. Raises CallFailed only for a lost connection."""
        try:
            self._groups.session.call("dcgmUnwatchFields", self._group, self._fields)
        except CallFailed as failure:
            if failure.connection_lost:
                raise
        self._groups.release_fields(self.ids)

    def read(self) -> tuple[list[Row], int]:
        """All rows since the last read, oldest first within a field, and the time at the hostengine in microseconds.

        Raises CallFailed; what was handed out until then comes again at the next read.
        """
        rows: list[Row] = []
        self._rows = rows
        self._since = self._groups.session.call(
            "dcgmGetValuesSince_v2", self._group, self._fields, self._since, self._callback, None
        )
        return rows, self._since - 1

    def _take(self, kind: int, entity: int, values: int, count: int, _: object) -> int:
        """Called by DCGM. It may not raise, and ``values`` are only valid until it returns."""
        for index in range(count):
            head = ctypes.string_at(values + index * self._size, ROW.size)
            _version, field, type_, status, time, whole = ROW.unpack(head)
            value = whole if type_ in _INTEGERS else _number(head) if type_ == _DOUBLE else None
            self._rows.append(Row(kind, entity, field, status, time, value))
        return 0


def _number(head: bytes) -> float:
    (number,) = _FLOAT.unpack_from(head, ROW.size - _FLOAT.size)
    return float(number)


def watch_most(
    groups: Groups, group: Any, ids: Sequence[int], interval: float, since: int
) -> tuple[Watch | None, dict[int, CallFailed]]:
    """A watch of as many of the fields as can be had, and why each of the others cannot.

    DCGM takes back the whole watch when it refuses one field of it: then each is tried alone. None: not one was taken.
    Raises CallFailed where the refusal concerns no single field: a lost connection, a combination of them, ...
    """
    try:
        return Watch(groups, group, ids, interval, since), {}
    except CallFailed as failure:
        if not failure.about_fields:
            raise
        if len(ids) == 1:
            return None, {ids[0]: failure}
        refused = _refused_alone(groups, group, ids, interval, since)
    accepted = [field for field in ids if field not in refused]
    return (Watch(groups, group, accepted, interval, since) if accepted else None), refused


def _refused_alone(
    groups: Groups, group: Any, ids: Sequence[int], interval: float, since: int
) -> dict[int, CallFailed]:
    refused: dict[int, CallFailed] = {}
    for field in ids:
        try:
            Watch(groups, group, (field,), interval, since).stop()
        except CallFailed as failure:
            if not failure.about_fields:
                raise
            refused[field] = failure
    return refused


def _keep(interval: float) -> float:
    """Seconds for which the hostengine keeps samples: longer than its calls can hang (60 to 120 s) at 1 Hz; less at
    higher rates, where it would keep very many."""
    return min(max(30.0, 150 * interval), 600.0)
