"""The newest sample of everything that is watched: one request for all entities of a kind and all fields of a pace.

dcgmGetLatestValues_v2 answers for a group of entities and a group of fields at once, no matter who watches them;
dcgmGetValuesSince_v2 asks the hostengine for each field of each entity, which costs two hundred times as much.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

from exporter.background.backoff import Backoff
from exporter.sources.dcgm.errors import CallFailed
from exporter.sources.dcgm.groups import EntityGroup, Groups
from exporter.sources.dcgm.pace import Budget
from exporter.sources.dcgm.rows import Rows
from exporter.sources.dcgm.values import FieldSample

log = logging.getLogger(__name__)
EARLY = 0.9  # of the pace: reads are not exactly on time

Key = tuple[int, int]
"""The number of an entity, and a field id."""


class Interest(NamedTuple):
    """What one watch wants to read: fields of entities of one kind, once every ``pace`` seconds."""

    kind: int
    numbers: tuple[int, ...]
    ids: tuple[int, ...]
    pace: float


class Latest:
    """The latest samples of one connection. ``budget`` is shared by the watches that must read more than the latest."""

    def __init__(self, groups: Groups) -> None:
        self.budget = Budget()
        self._groups = groups
        self._rows = Rows(groups.session)
        self._polls: dict[tuple[int, float], _Poll] = {}
        self._entities: dict[int, EntityGroup] = {}

    def join(self, interest: Interest) -> None:
        """Read these from the next ``refresh`` on."""
        poll = self._polls.setdefault((interest.kind, interest.pace), _Poll(interest.pace))
        poll.interests[interest] += 1
        poll.stale = True

    def leave(self, interest: Interest) -> None:
        """End what ``join`` began."""
        poll = self._polls[interest.kind, interest.pace]
        poll.interests[interest] -= 1
        if poll.interests[interest] == 0:
            del poll.interests[interest]
        poll.stale = True

    def refresh(self, now: float) -> None:
        """Reads what is due. What cannot be read this way has no rows for a while. Raises CallFailed for a lost
        connection."""
        self.budget.begin(now)
        for (kind, pace), poll in list(self._polls.items()):
            if not poll.interests:
                self._drop_fields(poll)
                del self._polls[kind, pace]
            elif poll.due(now):
                self._read(kind, poll, now)
        for kind in [kind for kind in self._entities if all(kind != poll[0] for poll in self._polls)]:
            self._groups.drop_entities(self._entities.pop(kind))

    def rows(self, interest: Interest) -> Mapping[Key, FieldSample] | None:
        """The rows of the last ``refresh`` in which it was due, with those of others; None: they cannot be had. The
        same object until the next."""
        poll = self._polls[interest.kind, interest.pace]
        return poll.rows if interest in poll.covered else None

    def _read(self, kind: int, poll: _Poll, now: float) -> None:
        try:
            group, fields = self._group(kind), self._fields(poll)
            self._rows.take()
            self._groups.session.call("dcgmGetLatestValues_v2", group.handle, fields, self._rows.callback, None)
        except CallFailed as failure:
            if failure.connection_lost:
                raise
            log.warning("the latest values cannot be read at once: %s; each field is asked for by itself", failure)
            poll.failed(now)
            self._drop_fields(poll)
            if kind in self._entities:
                self._groups.drop_entities(self._entities.pop(kind))
            return
        poll.read({(row.entity, row.field): row for row in self._rows.take()}, now)

    def _group(self, kind: int) -> EntityGroup:
        """Of all entities of this kind, whatever the pace. Raises CallFailed."""
        interests = [each for (of, _), poll in self._polls.items() if of == kind for each in poll.interests]
        numbers = tuple(sorted({number for each in interests for number in each.numbers}))
        group = self._entities.get(kind)
        if group is None or group.numbers != numbers:
            if group is not None:
                self._groups.drop_entities(self._entities.pop(kind))
            group = self._entities[kind] = self._groups.of_entities(kind, numbers)
        return group

    def _fields(self, poll: _Poll) -> Any:
        """Raises CallFailed."""
        ids = tuple(sorted({id_ for interest in poll.interests for id_ in interest.ids}))
        if poll.ids != ids:
            self._drop_fields(poll)
            poll.fields = self._groups.hold_fields(ids)
            poll.ids = ids
        return poll.fields

    def _drop_fields(self, poll: _Poll) -> None:
        if poll.ids:
            self._groups.release_fields(poll.ids)
        poll.ids, poll.fields = (), None


class _Poll:
    """What is read of one kind of entity at one pace."""

    def __init__(self, pace: float) -> None:
        self.interests: Counter[Interest] = Counter()
        self.covered: frozenset[Interest] = frozenset()
        self.rows: Mapping[Key, FieldSample] = {}
        self.stale = True
        """The set of wanted fields has changed."""
        self.ids: tuple[int, ...] = ()
        self.fields: Any = None  # the group of the ids
        self._pace = pace
        self._read_at = float("-inf")
        self._retry = Backoff(10.0, 120.0)

    def due(self, now: float) -> bool:
        return self._retry.due(now) and (self.stale or now - self._read_at >= EARLY * self._pace)

    def read(self, rows: Mapping[Key, FieldSample], now: float) -> None:
        self.rows, self.covered, self.stale, self._read_at = rows, frozenset(self.interests), False, now
        self._retry.worked()

    def failed(self, now: float) -> None:
        self.rows, self.covered = {}, frozenset()
        self._retry.failed(now)
