"""Servers on loopback that answer as a test tells them, byte by byte."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator

PATIENCE = 10.0  # seconds after which a server that misbehaves gives up, so that a client that waits fails its test

Answer = Callable[[socket.socket, bytes], None]


@contextlib.contextmanager
def serving(answer: Answer, tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """``host:port`` of a server that calls ``answer`` with the connection and the request of each client."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=_accept, args=(listener, answer, tls), daemon=True)
        thread.start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)
    thread.join(PATIENCE)


def reply(body: bytes, status: str = "200 OK", *headers: str, length: int | None = None) -> bytes:
    """A whole answer; ``length`` instead of the body's own."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body) if length is None else length}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


def says(data: bytes) -> Answer:
    """Sends that and closes."""
    return lambda connection, _: connection.sendall(data)


def drips(before: bytes, after: bytes = b"", every: float = 0.02) -> Answer:
    """Sends ``before``, then one byte after the other of ``after``, over and over."""

    def answer(connection: socket.socket, _: bytes) -> None:
        connection.sendall(before)
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            for byte in after:
                connection.sendall(bytes([byte]))
                time.sleep(every)

    return answer


def silent(connection: socket.socket, _: bytes) -> None:
    """Says nothing until the client goes."""
    connection.settimeout(PATIENCE)
    with contextlib.suppress(OSError):
        while connection.recv(1024):
            pass


def _accept(listener: socket.socket, answer: Answer, tls: ssl.SSLContext | None) -> None:
    with contextlib.suppress(OSError):
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=_serve, args=(connection, answer, tls), daemon=True).start()


def _serve(connection: socket.socket, answer: Answer, tls: ssl.SSLContext | None) -> None:
    with contextlib.suppress(OSError), contextlib.ExitStack() as open_now:
        open_now.enter_context(connection)
        connection.settimeout(PATIENCE)
        plain = open_now.enter_context(tls.wrap_socket(connection, server_side=True)) if tls else connection
        request = plain.recv(4096)
        while request.startswith(b"GET") and b"\r\n\r\n" not in request:
            request += plain.recv(4096)
        answer(plain, request)
        plain.shutdown(socket.SHUT_WR)
        silent(plain, b"")
