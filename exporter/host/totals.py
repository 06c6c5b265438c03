"""Totals over processes that come and go, which never fall."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from typing import Generic, NamedTuple, TypeVar

Member = TypeVar("Member", bound=Hashable)  # a process; its pid alone may be given to another one later


class Amounts(NamedTuple):
    """What one process did since it began, or several together. Seconds and bytes."""

    cpu: float = 0.0
    block: float = 0.0
    requested: int = 0
    read: int = 0
    written: int = 0

    def plus(self, other: Amounts) -> Amounts:
        """The sums."""
        return Amounts(
            self.cpu + other.cpu,
            self.block + other.block,
            self.requested + other.requested,
            self.read + other.read,
            self.written + other.written,
        )

    def since(self, before: Amounts) -> Amounts:
        """The growth. A counter that fell, which none should, counts as not grown."""
        return Amounts(
            max(0.0, self.cpu - before.cpu),
            max(0.0, self.block - before.block),
            max(0, self.requested - before.requested),
            max(0, self.read - before.read),
            max(0, self.written - before.written),
        )


class Totals(Generic[Member]):
    """What all members did while they were watched."""

    def __init__(self) -> None:
        self._last: dict[Member, Amounts] = {}
        self.total = Amounts()

    def feed(self, members: Mapping[Member, Amounts], new: Collection[Member]) -> Amounts:
        """One pass over the live members. ``new``: those that began since the last pass, counted from 0.

        A member seen for the first time that is not new was there before: only what it does from now on counts.
        """
        for member, amounts in members.items():
            before = self._last.get(member, Amounts() if member in new else amounts)
            self.total = self.total.plus(amounts.since(before))
        self._last = dict(members)
        return self.total
