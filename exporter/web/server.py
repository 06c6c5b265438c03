"""The web server: listens, admits a bounded number of connections, gives each a thread, ends them all in time.

The accepting thread never waits for a client: no handshake, no read, no blocking write happens in it. Slow and silent
clients therefore cost a slot until their deadline, or until another client needs it, and nothing else.
"""

from __future__ import annotations

import contextlib
import ipaddress
import logging
import selectors
import socket
import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from exporter.web.connection import Connection
from exporter.web.limits import Event, Limits, Stats
from exporter.web.listen import ListenError, listen, parse_address
from exporter.web.routes import Handler
from exporter.web.slots import EVICTIONS, Slots

if TYPE_CHECKING:
    from exporter.web.web_config import Security

__all__ = ["Event", "Limits", "ListenError", "Stats", "WebServer", "parse_address"]

_log = logging.getLogger(__name__)

_BUSY = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
_PAUSE_SECONDS = 0.1  # when the system has no descriptor left, accept would spin


class WebServer:
    """Serves one application on several addresses.

    `addresses` are the bound (host, port) pairs, in the order given; `stats` counts what happened.
    """

    def __init__(
        self,
        listen: Sequence[str],
        application: Handler,
        *,
        security: Security | None = None,
        limits: Limits = Limits(),  # noqa: B008 - frozen
    ) -> None:
        self.addresses: list[tuple[str, int]] = []
        self.stats = Stats()
        self._listen = tuple(listen)
        self._application = application
        self._security = security
        self._limits = limits
        self._slots = Slots(limits)
        self._stopping = threading.Event()
        self._listeners: list[socket.socket] = []
        self._workers: set[threading.Thread] = set()
        self._accepting: threading.Thread | None = None
        self._wake_reader, self._wake_writer = socket.socketpair()

    def start(self) -> None:
        """Bind every address and serve in daemon threads. Raises ListenError, and then nothing is bound."""
        try:
            for address in self._listen:
                self._listeners.append(listen(address))
        except ListenError:
            self._close_listeners()
            raise
        self.addresses = [listener.getsockname()[:2] for listener in self._listeners]
        self._accepting = threading.Thread(target=self._accept_loop, name="web-accept", daemon=True)
        self._accepting.start()

    def stop(self, timeout: float = 1.0) -> None:
        """Stop accepting, let requests that are being answered finish for half of timeout (seconds), end the rest."""
        deadline = time.monotonic() + timeout
        self._stopping.set()
        with contextlib.suppress(OSError):
            self._wake_writer.send(b"x")
        if self._accepting is None:  # never started: nothing but the wake-up pair is open
            self._wake_reader.close()
        else:
            self._accepting.join(timeout / 2)
        self._interrupt(answering=False)
        while time.monotonic() < deadline - timeout / 2 and self._slots.occupants():
            time.sleep(0.005)
        self._interrupt(answering=True)
        for worker in list(self._workers):
            worker.join(max(deadline - time.monotonic(), 0))
        self._wake_writer.close()

    def _interrupt(self, *, answering: bool) -> None:
        for occupant in self._slots.occupants():
            if answering or not occupant.answering:
                occupant.interrupt()

    def _accept_loop(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._wake_reader, selectors.EVENT_READ)
            for listener in self._listeners:
                selector.register(listener, selectors.EVENT_READ)
            while not self._stopping.is_set():
                for key, _ in selector.select():
                    if isinstance(key.fileobj, socket.socket) and key.fileobj is not self._wake_reader:
                        self._accept(key.fileobj)
        self._close_listeners()
        self._wake_reader.close()

    def _accept(self, listener: socket.socket) -> None:
        try:
            sock, peer = listener.accept()
        except (BlockingIOError, ConnectionAbortedError):  # the client left between select and accept
            return
        except OSError as error:
            self.stats.count(Event.REFUSED_SYSTEM)
            _log.warning("cannot accept a connection: %s; `ulimit -n` shows the limit on open files", error)
            self._stopping.wait(_PAUSE_SECONDS)
            return
        connection = Connection(
            sock, _client(peer[0]), self._application, self._security, self._limits, self.stats, self._stopping
        )
        outcome = self._slots.admit(connection)
        self.stats.count(outcome)
        if outcome in (Event.REFUSED_TOTAL, Event.REFUSED_CLIENT):
            self._refuse(sock)
            return
        if outcome in EVICTIONS:
            self.stats.count(Event.ACCEPTED)
        self._serve(connection, sock)

    def _serve(self, connection: Connection, sock: socket.socket) -> None:
        worker = threading.Thread(target=self._work, args=(connection,), name="web-worker", daemon=True)
        self._workers.add(worker)
        try:
            worker.start()
        except RuntimeError as error:  # no thread left
            self.stats.count(Event.REFUSED_SYSTEM)
            _log.warning(
                "cannot serve a connection: %s; check the container's pids limit, which also limits threads", error
            )
            self._workers.discard(worker)
            self._slots.release(connection)
            self._refuse(sock)

    def _work(self, connection: Connection) -> None:
        try:
            connection.run()
        finally:
            self._slots.release(connection)
            self._workers.discard(threading.current_thread())

    def _refuse(self, sock: socket.socket) -> None:
        """Answer 503 if that needs no waiting and no TLS, and close."""
        with sock, contextlib.suppress(OSError):
            sock.setblocking(False)
            if self._security is None or self._security.state.tls is None:
                sock.send(_BUSY)
                sock.shutdown(socket.SHUT_WR)
                sock.recv(self._limits.header_bytes)  # closing on unread bytes would take the 503 back

    def _close_listeners(self) -> None:
        for listener in self._listeners:
            listener.close()
        self._listeners.clear()


def _client(host: str) -> str:
    """The address of a client; one that came by IPv4 to a dual-stack socket counts as IPv4."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(mapped or address)
