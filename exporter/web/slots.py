"""Who may be connected: a bounded number of connections in all and for each client."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Protocol

from exporter.web.limits import Event, Limits


class Occupant(Protocol):
    """What the slots need to know of a connection."""

    @property
    def client(self) -> str: ...

    @property
    def idle_since(self) -> float | None:
        """When it began to wait for a next request; None while it handshakes, reads, works or writes."""

    @property
    def answering(self) -> bool:
        """A request was read and its response is not yet sent."""

    def interrupt(self) -> None:
        """Make it end soon."""


class Slots:
    """The set of open connections.

    When they are all taken, the longest idle keep-alive connection gives its place to the newcomer: it costs its
    client one reconnect, and idle connections alone cannot keep anybody out. When none is idle, the newcomer is
    refused: those that are being served go on.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._lock = threading.Lock()
        self._occupants: set[Occupant] = set()

    def admit(self, newcomer: Occupant) -> Event:
        """Take a slot. ACCEPTED, EVICTED_IDLE (accepted in an idle one's place), or why it was refused."""
        with self._lock:
            same_client = [occupant for occupant in self._occupants if occupant.client == newcomer.client]
            outcome = Event.ACCEPTED
            if len(same_client) >= self._limits.connections_per_client:
                outcome = self._evict(same_client, Event.REFUSED_CLIENT)
            elif len(self._occupants) >= self._limits.connections:
                outcome = self._evict(self._occupants, Event.REFUSED_TOTAL)
            if outcome in (Event.ACCEPTED, Event.EVICTED_IDLE):
                self._occupants.add(newcomer)
            return outcome

    def release(self, occupant: Occupant) -> None:
        with self._lock:
            self._occupants.discard(occupant)

    def occupants(self) -> list[Occupant]:
        with self._lock:
            return list(self._occupants)

    def _evict(self, among: Iterable[Occupant], refusal: Event) -> Event:
        idle = [(since, occupant) for occupant in among if (since := occupant.idle_since) is not None]
        if not idle:
            return refusal
        _, longest = min(idle, key=lambda entry: entry[0])
        self._occupants.discard(longest)
        longest.interrupt()
        return Event.EVICTED_IDLE
