"""A client's socket in which every operation has a total deadline, in clear text or TLS."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # a plain server never loads OpenSSL: 4 MiB of memory
    import ssl

_CHUNK = 64 * 1024


class DeadlinePassed(Exception):
    """The client was too slow; the request or response is abandoned."""


class Transport:
    """One accepted socket. All methods but `interrupt` belong to one thread.

    A deadline is an absolute `time.monotonic()` instant, and holds for the whole operation, not for each byte.
    Methods raise DeadlinePassed when it passes and OSError (of which ssl.SSLError is one) when the client is gone.
    """

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._tls: ssl.SSLSocket | None = None
        self._swap = threading.Lock()
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def start_tls(self, context: ssl.SSLContext, deadline: float) -> None:
        """The server's side of the handshake."""
        with self._swap:  # wrapping moves the descriptor to another object, and `interrupt` must find it
            self._tls = context.wrap_socket(self._socket, server_side=True, do_handshake_on_connect=False)
            self._socket = self._tls
        self._arm(deadline)
        try:
            self._tls.do_handshake()
        except TimeoutError as error:
            raise DeadlinePassed from error

    @property
    def peer_certificate(self) -> dict[str, object]:
        """The verified certificate of the client as `ssl.SSLSocket.getpeercert()` gives it; empty without one."""
        return dict(self._tls.getpeercert() or {}) if self._tls is not None else {}

    def receive(self, deadline: float) -> bytes:
        """Some bytes, or none when the client has closed its side."""
        self._arm(deadline)
        try:
            return self._socket.recv(_CHUNK // 8)
        except TimeoutError as error:
            raise DeadlinePassed from error

    def send(self, data: bytes, deadline: float, waits: Callable[[], None]) -> None:
        """All of the bytes. ``waits`` is called before each piece.

        `sendall` of a TLS socket restarts its time-out with every record, hence the loop.
        """
        view = memoryview(data)
        try:
            while view:
                waits()
                self._arm(deadline)
                view = view[self._socket.send(view[:_CHUNK]) :]
        except TimeoutError as error:
            raise DeadlinePassed from error

    def send_clear(self, data: bytes) -> None:
        """A few bytes past TLS, for a client that spoke clear text to a TLS port."""
        with contextlib.suppress(OSError):
            socket.socket.send(self._socket, data)

    def linger(self, seconds: float) -> None:
        """End our side and wait a little until the client ends its own: closing on unread bytes kills the answer."""
        deadline = time.monotonic() + seconds
        with contextlib.suppress(OSError, DeadlinePassed):
            socket.socket.shutdown(self._socket, socket.SHUT_WR)
            while time.monotonic() < deadline and self._drain(deadline):
                pass

    def _drain(self, deadline: float) -> bytes:
        self._socket.settimeout(max(deadline - time.monotonic(), 0.001))
        return socket.socket.recv(self._socket, _CHUNK)

    def interrupt(self) -> None:
        """Wake the thread that waits on this socket: it sees the end of the connection. From any thread."""
        with self._swap, contextlib.suppress(OSError):
            # Not SSLSocket.shutdown: it drops the TLS state, and the worker's next send would go out in clear text.
            socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def abort(self) -> None:
        """Close and throw away what the client has not read, rather than let the kernel hold it for minutes."""
        with self._swap, contextlib.suppress(OSError):
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self._socket.close()

    def close(self) -> None:
        """Close, in TLS without a close_notify: responses have a length, so nothing can be cut off unseen.

        After a close_notify OpenSSL would keep the session of a TLS 1.2 client for two hours, up to 20,000 of them at
        10 KiB, and Python's ssl has no switch for that cache. A session that did not end cleanly is dropped.
        """
        with self._swap, contextlib.suppress(OSError):
            self._socket.close()

    def _arm(self, deadline: float) -> None:
        remaining = deadline - time.monotonic()
        if remaining <= 0:
            raise DeadlinePassed
        self._socket.settimeout(remaining)
