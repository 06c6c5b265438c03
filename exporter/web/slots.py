"""Limits the number of open connections, in all and per client."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Protocol

from exporter.web.limits import Event, Limits

EVICTIONS = (Event.EVICTED_IDLE, Event.EVICTED_SLOW)


class Occupant(Protocol):
    """What the slots need to know of a connection."""

    @property
    def client(self) -> str: ...

    @property
    def waits_since(self) -> float | None:
        """Since when its client has kept it waiting: for a request, its end, or for bytes to be taken. None while it
        does work of its own."""

    @property
    def idle(self) -> bool:
        """It waits for a next request, and no byte of it has come."""

    @property
    def answering(self) -> bool:
        """A request was read and its response is not yet sent."""

    def interrupt(self) -> None:
        """Make it end soon."""


class Slots:
    """The set of open connections.

    When they are all taken, the one whose client has kept it waiting longest gives its place to the newcomer. So nobody
    is kept out by connections that are idle, silent or slow, however many: it costs a well-behaved client one
    reconnect, and only while there are too many. Those that are being worked for are not ended; when all are, the
    newcomer is refused.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._lock = threading.Lock()
        self._occupants: set[Occupant] = set()
        self._leaving: set[Occupant] = set()  # had to give way, and their threads have not ended yet

    def admit(self, newcomer: Occupant) -> Event:
        """Take a slot. ACCEPTED, EVICTED_IDLE or EVICTED_SLOW (accepted in another's place), or why it was refused."""
        with self._lock:
            same_client = [occupant for occupant in self._occupants if occupant.client == newcomer.client]
            outcome = Event.ACCEPTED
            if len(same_client) >= self._limits.connections_per_client:
                outcome = self._evict(same_client, Event.REFUSED_CLIENT)
            elif len(self._occupants) >= self._limits.connections:
                outcome = self._evict(self._occupants, Event.REFUSED_TOTAL)
            if outcome in (Event.ACCEPTED, *EVICTIONS):
                self._occupants.add(newcomer)
            return outcome

    def release(self, occupant: Occupant) -> None:
        with self._lock:
            self._occupants.discard(occupant)
            self._leaving.discard(occupant)

    def occupants(self) -> list[Occupant]:
        with self._lock:
            return list(self._occupants)

    def _evict(self, among: Iterable[Occupant], refusal: Event) -> Event:
        if len(self._leaving) >= self._limits.connections:
            return refusal  # threads stay bounded
        waiting = [(since, occupant) for occupant in among if (since := occupant.waits_since) is not None]
        if not waiting:
            return refusal
        _, longest = min(waiting, key=lambda entry: entry[0])
        outcome = Event.EVICTED_IDLE if longest.idle else Event.EVICTED_SLOW
        self._occupants.discard(longest)
        self._leaving.add(longest)
        longest.interrupt()
        return outcome
