"""Groups of entities and of fields in the hostengine.

At most 64 groups and 64 field groups fit into a hostengine, of all clients together; names of field groups are unique
in it.
"""

from __future__ import annotations

import contextlib
import itertools
import uuid
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from exporter.sources.dcgm.errors import CallFailed
from exporter.sources.dcgm.session import Session

_GROUP_EMPTY = 1  # DCGM_GROUP_EMPTY


@dataclass(frozen=True, slots=True)
class EntityGroup:
    """A group of the hostengine: its entities are of one kind (dcgm_field_entity_group_t)."""

    kind: int
    numbers: tuple[int, ...]
    handle: Any


class Groups:
    """The groups of entities and of fields that one connection made. Field groups are shared: there are few."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._name = f"honest-gpu-exporter {uuid.uuid4().hex[:12]}"
        self._numbers = itertools.count(1)
        self._fields: dict[tuple[int, ...], Any] = {}
        self._holders: Counter[tuple[int, ...]] = Counter()

    def of_entities(self, kind: int, numbers: Iterable[int]) -> EntityGroup:
        """Make a new group. Raises CallFailed, and leaves nothing behind then."""
        made = EntityGroup(kind, tuple(numbers), self.session.call("dcgmGroupCreate", _GROUP_EMPTY, self._next_name()))
        try:
            for number in made.numbers:
                self.session.call("dcgmGroupAddEntity", made.handle, kind, number)
        except CallFailed:
            self.drop_entities(made)
            raise
        return made

    def drop_entities(self, group: EntityGroup) -> None:
        """Delete a group; it may be gone already."""
        with contextlib.suppress(CallFailed):
            self.session.call("dcgmGroupDestroy", group.handle)

    def hold_fields(self, ids: tuple[int, ...]) -> Any:
        """The group of these fields: made for its first user, deleted with its last. Raises CallFailed."""
        if ids not in self._fields:
            self._fields[ids] = self.session.call("dcgmFieldGroupCreate", list(ids), self._next_name())
        self._holders[ids] += 1
        return self._fields[ids]

    def release_fields(self, ids: tuple[int, ...]) -> None:
        """Stop using the group that ``hold_fields`` returned."""
        self._holders[ids] -= 1
        if self._holders[ids] == 0:
            with contextlib.suppress(CallFailed):
                self.session.call("dcgmFieldGroupDestroy", self._fields.pop(ids))

    def _next_name(self) -> str:
        return f"{self._name} {next(self._numbers)}"
