"""The limits for clients, and counts of what happened."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum


@dataclass(frozen=True)
class Limits:
    """Bounds of the web server. All times are seconds, and each is a total, however slowly bytes trickle in.

    connections, connections_per_client: open at once; a client is an address. Past them, the connection whose client
        has kept it waiting longest gives way; when all are being worked for, the newcomer is refused.
    requests_per_connection: then the connection is closed, so that load spreads again over replicas and addresses.
    request_line_bytes, header_bytes, header_count: past them 414 and 431. body_bytes: read and ignored; past it 413.
    handshake_seconds: TLS handshake. request_seconds: from the first byte (on a new connection: from its start) to
        the end of the request. write_seconds: for the whole response.
    idle_seconds: wait for the next request on a kept connection; above 60 s, so that a one-minute scrape keeps its
        connection. A long idle time costs nobody anything, as idle connections give way.
    linger_seconds: after an error, wait for the client to take the answer before the socket is closed on it.
    """

    connections: int = 32
    connections_per_client: int = 8
    requests_per_connection: int = 1000
    request_line_bytes: int = 8 * 1024
    header_bytes: int = 16 * 1024
    header_count: int = 64
    body_bytes: int = 4 * 1024
    handshake_seconds: float = 5.0
    request_seconds: float = 10.0
    idle_seconds: float = 65.0
    write_seconds: float = 10.0
    linger_seconds: float = 0.5


class Event(str, Enum):
    """What the server counts; the value is fit for a metric's label."""

    ACCEPTED = "accepted"
    REFUSED_TOTAL = "refused_connections"
    REFUSED_CLIENT = "refused_connections_per_client"
    REFUSED_SYSTEM = "refused_by_system"  # no file descriptor or thread left
    EVICTED_IDLE = "evicted_idle"  # gave way to a newcomer
    EVICTED_SLOW = "evicted_slow"  # the same, in the middle of a handshake, a request or a response
    HANDSHAKE_FAILED = "handshake_failed"
    HANDSHAKE_TIMEOUT = "handshake_timeout"
    CLIENT_NOT_ALLOWED = "client_certificate_not_allowed"
    REQUEST_TIMEOUT = "request_timeout"
    WRITE_TIMEOUT = "write_timeout"
    BAD_REQUEST = "bad_request"
    REQUEST = "request"
    UNAUTHORIZED = "unauthorized"
    AUTHENTICATION_BUSY = "authentication_busy"
    HANDLER_ERROR = "handler_error"


class Stats:
    """Counts of events since the start; safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[Event] = Counter()

    def count(self, event: Event) -> None:
        with self._lock:
            self._counts[event] += 1

    def __getitem__(self, event: Event) -> int:
        with self._lock:
            return self._counts[event]

    def snapshot(self) -> Mapping[Event, int]:
        """Every event with its count, those that never happened included."""
        with self._lock:
            return {event: self._counts[event] for event in Event}
