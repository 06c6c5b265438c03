"""Clients that the tests drive by hand: what a well-behaved one does, and a place to start for the others."""

from __future__ import annotations

import http.client
import socket
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

PATIENCE = 10.0  # seconds until a test gives up; nothing that works comes near it


@dataclass(frozen=True)
class Reply:
    status: int
    headers: Mapping[str, str]
    body: bytes


def connect(address: tuple[str, int], context: ssl.SSLContext | None = None) -> socket.socket:
    sock = socket.create_connection(address, timeout=PATIENCE)
    return context.wrap_socket(sock, server_hostname="localhost") if context else sock


def request_bytes(path: str = "/", method: str = "GET", headers: Mapping[str, str] | None = None) -> bytes:
    fields = {"Host": "localhost", **(headers or {})}
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def read_reply(sock: socket.socket, method: str = "GET") -> Reply:
    response = http.client.HTTPResponse(sock, method=method)
    response.begin()
    body = response.read()
    return Reply(response.status, {name.lower(): value for name, value in response.getheaders()}, body)


def ask(sock: socket.socket, path: str = "/", method: str = "GET", headers: Mapping[str, str] | None = None) -> Reply:
    """One request on an open connection."""
    sock.sendall(request_bytes(path, method, headers))
    return read_reply(sock, method)


def get(
    address: tuple[str, int],
    path: str = "/",
    *,
    context: ssl.SSLContext | None = None,
    headers: Mapping[str, str] | None = None,
) -> Reply:
    """One request on a connection of its own."""
    with connect(address, context) as sock:
        return ask(sock, path, headers={"Connection": "close", **(headers or {})})


def is_closed(sock: socket.socket) -> bool:
    """Whether the server ends the connection (waits for it) without sending anything more."""
    try:
        return sock.recv(1) == b""
    except TimeoutError:
        return False
    except OSError:
        return True


def until(condition: Callable[[], bool]) -> bool:
    """Wait for a condition; False when it does not come true in PATIENCE."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.005)
    return False
