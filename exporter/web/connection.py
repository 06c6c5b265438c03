"""One client's connection, from handshake to close. Runs in a thread of its own."""

from __future__ import annotations

import logging
import socket
import threading
import time
from typing import TYPE_CHECKING

from exporter.web.http1 import BadRequest, Head, find_head, parse_head, render
from exporter.web.limits import Event, Limits, Stats
from exporter.web.routes import Handler, Request, Response, text_response
from exporter.web.transport import DeadlinePassed, Transport

if TYPE_CHECKING:
    from exporter.web.web_config import Security, SecurityState

_log = logging.getLogger(__name__)

_CLEAR_TEXT_ON_TLS = b"HTTP/1.0 400 Bad Request\r\n\r\nThis port speaks HTTPS, and the request came in HTTP.\n"


class Connection:
    """Serves requests until the client, a limit or `interrupt` ends it.

    A connection lives under the security state that it began with: when the web configuration file changes, it is
    closed before the next request, so that a client that lost its right does not keep it by staying connected.
    """

    def __init__(
        self,
        sock: socket.socket,
        client: str,
        application: Handler,
        security: Security | None,
        limits: Limits,
        stats: Stats,
        stopping: threading.Event,
    ) -> None:
        self.client = client
        self.waits_since: float | None = time.monotonic()
        self.idle = self.answering = False
        self._transport = Transport(sock)
        self._application = application
        self._security = security
        self._limits = limits
        self._stats = stats
        self._stopping = stopping
        self._received = bytearray()

    def run(self) -> None:
        """Serve the connection to its end, and close it. Raises nothing that a client can cause."""
        try:
            state = self._security.current() if self._security is not None else None
            if self._enter(state):
                for number in range(self._limits.requests_per_connection):
                    last = number == self._limits.requests_per_connection - 1
                    if not self._exchange(state, first=number == 0, last=last):
                        break
        except OSError as error:  # the client is gone: its right
            _log.debug("connection of %s ended: %s", self.client, error)
        finally:
            self._transport.close()

    def interrupt(self) -> None:
        self._transport.interrupt()

    def _enter(self, state: SecurityState | None) -> bool:
        """The TLS handshake, where there is TLS; False when the client does not come in."""
        if state is None or state.tls is None:
            return True
        try:
            self._transport.start_tls(state.tls, time.monotonic() + self._limits.handshake_seconds)
        except DeadlinePassed:
            self._stats.count(Event.HANDSHAKE_TIMEOUT)
            return False
        except OSError as error:
            self._stats.count(Event.HANDSHAKE_FAILED)
            _log.debug("TLS handshake with %s failed: %s", self.client, error)
            if getattr(error, "reason", None) == "HTTP_REQUEST":
                self._transport.send_clear(_CLEAR_TEXT_ON_TLS)
                self._transport.linger(self._limits.linger_seconds)
            return False
        if state.permits(self._transport.peer_certificate):
            return True
        self._stats.count(Event.CLIENT_NOT_ALLOWED)
        _log.info("client %s: no name of its certificate is in tls_server_config.client_allowed_sans", self.client)
        return False

    def _exchange(self, state: SecurityState | None, *, first: bool, last: bool) -> bool:
        """One request and its response; whether another may follow."""
        try:
            head = self._read_request(first)
        except DeadlinePassed:
            self._stats.count(Event.REQUEST_TIMEOUT)
            if self._received:
                self._refuse(text_response(408, "The request did not arrive in time."), state)
            return False
        except BadRequest as error:
            self._stats.count(Event.BAD_REQUEST)
            self._refuse(error.response, state)
            return False
        if head is None:
            return False
        current = self._security.current() if self._security is not None else None
        if current is not state and not first:
            return False
        self._stats.count(Event.REQUEST)
        self.answering, self.waits_since = True, None
        try:
            response = self._answer(head.request, current)
            keep_alive = head.keep_alive and not last and not self._stopping.is_set()
            sent = self._send(response, current, head_only=head.request.method == "HEAD", keep_alive=keep_alive)
            return sent and keep_alive
        finally:
            self.answering = False

    def _read_request(self, first: bool) -> Head | None:
        """The next request; None when there is none. Raises BadRequest and DeadlinePassed."""
        if not self._received and not first and not self._await_next():
            return None
        if not first:
            self._waits()  # on a new connection since its beginning
        deadline = time.monotonic() + self._limits.request_seconds
        while not (length := find_head(self._received, self._limits)):
            if not self._receive(deadline):
                return None
        head = parse_head(bytes(self._received[:length]), self.client, self._limits)
        del self._received[:length]
        while len(self._received) < head.body_length:
            if not self._receive(deadline):
                return None
        del self._received[: head.body_length]
        return head

    def _await_next(self) -> bool:
        """Wait, idle, for the first bytes of a next request; False when none comes."""
        self._waits()
        self.idle = True
        try:
            return self._receive(time.monotonic() + self._limits.idle_seconds)
        except DeadlinePassed:
            return False
        finally:
            self.idle = False

    def _waits(self) -> None:
        self.waits_since = time.monotonic()

    def _receive(self, deadline: float) -> bool:
        chunk = self._transport.receive(deadline)
        self._received += chunk
        return bool(chunk)

    def _answer(self, request: Request, state: SecurityState | None) -> Response:
        refusal = self._authenticate(request, state)
        if refusal is not None:
            return refusal
        try:
            return self._application(request)
        except Exception:  # noqa: BLE001 - logged; one handler's fault must not end the connection of others
            self._stats.count(Event.HANDLER_ERROR)
            _log.exception("the handler of %s failed", request.path)
            return _internal_error()

    def _authenticate(self, request: Request, state: SecurityState | None) -> Response | None:
        """None for a request that may pass, else its answer."""
        if state is None or state.authenticator is None:
            return None
        verdict = state.authenticator.check(request.headers.get("authorization"))
        if verdict.granted:
            return None
        if verdict.busy:
            self._stats.count(Event.AUTHENTICATION_BUSY)
            return text_response(503, "Too many passwords are being checked.", {"Retry-After": "1"})
        self._stats.count(Event.UNAUTHORIZED)
        return text_response(401, "Unauthorized", {"WWW-Authenticate": 'Basic realm="exporter", charset="UTF-8"'})

    def _refuse(self, response: Response, state: SecurityState | None) -> None:
        if self._send(response, state, head_only=False, keep_alive=False):
            self._transport.linger(self._limits.linger_seconds)

    def _send(self, response: Response, state: SecurityState | None, *, head_only: bool, keep_alive: bool) -> bool:
        """Send a response; False when the client did not take it in time."""
        extra = state.headers if state is not None else {}
        try:
            data = render(response, head_only=head_only, keep_alive=keep_alive, extra=extra, now=time.time())
        except ValueError:
            self._stats.count(Event.HANDLER_ERROR)
            _log.exception("a handler made a response that cannot be sent")
            data = render(_internal_error(), head_only=head_only, keep_alive=keep_alive, extra=extra, now=time.time())
        try:
            # a client that takes bytes has not kept us waiting; one that takes none is the first to give way
            self._transport.send(data, time.monotonic() + self._limits.write_seconds, self._waits)
        except DeadlinePassed:
            self._stats.count(Event.WRITE_TIMEOUT)
            self._transport.abort()
            return False
        return True


def _internal_error() -> Response:
    return text_response(500, "Internal error; see the log of the exporter.")
