"""A socket whose every step counts against one total time and one total size.

A peer that drips bytes, or that never ends its headers or its chunks, cannot stretch either.
"""

from __future__ import annotations

import io
import socket
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer


class TooLargeError(Exception):
    """The peer has sent more than it may."""


class Deadline:
    """A deadline, given in seconds from now."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    def left(self) -> float:
        """Seconds left; TimeoutError after the deadline."""
        left = self._end - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left


class TimedReader(io.RawIOBase):
    """The receiving side of a socket. TimeoutError after the deadline, TooLargeError beyond ``limit`` bytes."""

    def __init__(self, sock: socket.socket, deadline: Deadline, limit: int) -> None:
        super().__init__()
        self._sock = sock
        self._deadline = deadline
        self._allowed = limit

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        self._sock.settimeout(self._deadline.left())
        count = self._sock.recv_into(buffer)
        self._allowed -= count
        if self._allowed < 0:
            raise TooLargeError
        return count

    def makefile(self, *_: Any, **__: Any) -> io.BufferedReader:
        """The file that http.client reads from."""
        return io.BufferedReader(self)


def connect(host: str, port: int, deadline: Deadline) -> socket.socket:
    """A TCP connection to the first address that answers; each gets an equal share of the time that is left.

    Raises OSError. The DNS lookup has no deadline: the system's resolver decides how long it tries.
    """
    addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    failure: OSError = OSError("the name has no address")
    for position, (family, kind, protocol, _, address) in enumerate(addresses):
        sock = socket.socket(family, kind, protocol)
        try:
            sock.settimeout(deadline.left() / (len(addresses) - position))
            sock.connect(address)
        except OSError as error:
            sock.close()
            failure = error
        else:
            return sock
    raise failure
