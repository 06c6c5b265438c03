"""A thousand connections that come again as soon as they are closed: from Prometheus' own address, and from many."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Sequence

import pytest

from tests.attacks.clients import GET
from tests.attacks.conftest import LIMITS, Attacked

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("attacks")]

SECONDS, EACH_SECOND = 4.0, 250
OWN = ("127.0.0.1",)  # behind one gateway, or on the same node
MANY = tuple(f"127.0.3.{number}" for number in range(1, 126))


class Flood:
    """Opens connections from these addresses in turn and says this much on each; none is ever closed by us."""

    def __init__(self, port: int, sources: Sequence[str], says: bytes) -> None:
        self._port, self._sources, self._says = port, sources, says
        self._open: list[socket.socket] = []

    def run(self, attacked: Attacked) -> int:
        """SECONDS of it, EACH_SECOND at most, evenly: a machine that is busy gets no burst. How many were opened."""
        began = time.monotonic()
        try:
            while time.monotonic() - began < SECONDS:
                self._connect()
                if len(self._open) % 50 == 0:
                    attacked.assert_bounded()
                time.sleep(1 / EACH_SECOND)
        finally:
            for sock in self._open:
                sock.close()
        return len(self._open)

    def _connect(self) -> None:
        sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        sock.bind((self._sources[len(self._open) % len(self._sources)], 0))
        sock.setblocking(False)
        self._open.append(sock)
        sock.connect_ex(("127.0.0.1", self._port))
        with contextlib.suppress(OSError):
            sock.send(self._says)


@pytest.mark.parametrize("sources", [OWN, MANY], ids=["one address", "many addresses"])
@pytest.mark.parametrize("says", [b"", b"GET /metrics HTTP/1.1\r\nX: ", GET], ids=["silent", "half a request", "deaf"])
def test_newcomers_are_served_while_it_lasts(attacked: Attacked, sources: Sequence[str], says: bytes) -> None:
    """The longest waiting gives way. Without that, 10 s of silence on the last slot were 10 s without a scrape."""
    before = attacked.count("evicted_slow") + attacked.count("evicted_idle")
    made = Flood(attacked.port, sources, says).run(attacked)
    attacked.assert_unharmed()
    evicted = attacked.count("evicted_slow") + attacked.count("evicted_idle") - before
    assert made - evicted <= LIMITS.connections + 10 * SECONDS  # those of Prometheus, and ours to look at the counters
    assert evicted > LIMITS.connections
