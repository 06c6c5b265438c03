"""A TLS server that says byte for byte what a test wants: what no well-behaved API server would."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from exporter.attribution.kubernetes.credentials import Credentials
from tests.web.conftest import Authority

Answer = Callable[[socket.socket], None]  # given the connection once the question is read; it is closed afterwards
CHUNKED = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"


def chunk(piece: bytes) -> bytes:
    """One chunk of a body."""
    return f"{len(piece):x}\r\n".encode() + piece + b"\r\n"


def whole(body: bytes, status: str = "200 OK", header: str = "") -> bytes:
    """An answer with a length."""
    return f"HTTP/1.1 {status}\r\n{header}Content-Length: {len(body)}\r\n\r\n".encode() + body


class RawServer:
    """``asked``: the questions as they came, whole."""

    def __init__(self, folder: Path, answer: Answer) -> None:
        authority = Authority(folder, "raw")
        identity = authority.issue("raw-apiserver")
        self._answer = answer
        self.asked: list[bytes] = []
        token = folder / "raw-token"
        token.write_text("secret\n")
        self.credentials = Credentials(token, authority.cert)
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(identity.cert, identity.key)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listening.getsockname()[1])
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self) -> None:
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._thread.join(10.0)

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                plain, _ = self._listening.accept()
                with suppress(OSError), self._context.wrap_socket(plain, server_side=True) as connection:
                    question = b""
                    while b"\r\n\r\n" not in question and (piece := connection.recv(65536)):
                        question += piece
                    self.asked.append(question)
                    self._answer(connection)


@contextmanager
def raw_server(folder: Path, answer: Answer | bytes) -> Iterator[RawServer]:
    """One that runs. ``answer`` as bytes: sent, and the connection is closed."""
    server = RawServer(folder, (lambda connection: connection.sendall(answer)) if isinstance(answer, bytes) else answer)
    try:
        yield server
    finally:
        server.close()
