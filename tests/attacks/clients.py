"""Clients that mean no good. They come from another address than Prometheus, as an attacker's host does."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterator

ELSEWHERE = "127.0.0.2"
PATIENCE = 30.0  # seconds until a test gives up; the daemon's longest deadline is 10
GET = b"GET /metrics HTTP/1.1\r\nHost: node\r\n\r\n"


def connect(port: int, source: str = ELSEWHERE, *, receive_buffer: int | None = None) -> socket.socket:
    """An open connection to the daemon. ``receive_buffer``: bytes, for clients that do not read."""
    sock = socket.socket()
    if receive_buffer is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    sock.bind((source, 0))
    sock.settimeout(PATIENCE)
    sock.connect(("127.0.0.1", port))
    return sock


@contextlib.contextmanager
def many(port: int, count: int, source: str = ELSEWHERE) -> Iterator[list[socket.socket]]:
    """``count`` open connections of one address."""
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(connect(port, source)) for _ in range(count)]


def received(sock: socket.socket, patience: float = PATIENCE) -> bytes:
    """Everything until the daemon ends the connection. TimeoutError when it does not."""
    deadline, data = time.monotonic() + patience, b""
    with contextlib.suppress(ConnectionError):
        while True:
            sock.settimeout(max(0.01, deadline - time.monotonic()))
            piece = sock.recv(65536)
            if not piece:
                break
            data += piece
    return data


def said(port: int, data: bytes, source: str = ELSEWHERE) -> bytes:
    """What the daemon answers to ``data``, after which nothing more comes from us."""
    with connect(port, source) as sock:
        with contextlib.suppress(ConnectionError):  # it may refuse before it has read all
            sock.sendall(data)
            sock.shutdown(socket.SHUT_WR)
        return received(sock)
