"""Clients that take connections and give nothing for them."""

from __future__ import annotations

import contextlib
import resource
import selectors
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from tests.attacks.clients import ELSEWHERE, GET, PATIENCE, connect, many, received
from tests.attacks.conftest import LIMITS, Attacked

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("attacks")]

MANY = 1000


SLOTS = LIMITS.connections_per_client


@dataclass
class Slow:
    """What three kinds of slow clients saw; each kind has an address of its own, and they came at the same time."""

    silent: list[bytes] = field(default_factory=list)
    dripping: list[bytes] = field(default_factory=list)
    seconds: float = 0.0  # until the last of them was cut off


@pytest.fixture(scope="module")
def slow(attacked: Attacked) -> Slow:
    """They take 24 of the 32 slots, and each is held until its deadline."""
    seen = Slow()
    started = time.monotonic()
    with contextlib.ExitStack() as stack:
        silent = stack.enter_context(many(attacked.port, 100, "127.0.0.2"))
        dripping = stack.enter_context(many(attacked.port, SLOTS, "127.0.0.3"))
        for sock in dripping:
            sock.sendall(b"GET /metrics HTTP/1.1\r\nHost: node\r\nX-A: ")
        for _ in range(SLOTS):
            _ask_and_do_not_read(stack.enter_context(connect(attacked.port, "127.0.0.4", receive_buffer=2048)))
        while time.monotonic() - started < LIMITS.request_seconds + 1:
            attacked.assert_bounded()
            for sock in dripping:
                with contextlib.suppress(OSError):
                    sock.send(b"a")
            time.sleep(0.2)
        seen.silent = [received(sock) for sock in silent]
        seen.dripping = [received(sock) for sock in dripping]
        attacked.assert_counted("write_timeout", SLOTS)
    seen.seconds = time.monotonic() - started
    return seen


def _ask_and_do_not_read(sock: socket.socket) -> None:
    sock.settimeout(0.1)
    with contextlib.suppress(TimeoutError):
        for _ in range(LIMITS.requests_per_connection):
            sock.sendall(GET)


def test_silent_clients(attacked: Attacked, slow: Slow) -> None:
    """They connect and say nothing. Beyond an address's slots the older ones give way, at the deadline the rest."""
    assert slow.silent == [b""] * 100
    attacked.assert_counted("evicted_slow", 100 - SLOTS)


def test_a_byte_at_a_time(attacked: Attacked, slow: Slow) -> None:
    """Slow-loris: a header that never ends. The deadline is for the request, not for the byte."""
    assert all(answer.startswith(b"HTTP/1.1 408") for answer in slow.dripping)
    attacked.assert_counted("request_timeout", 2 * SLOTS)


def test_all_of_them_are_gone_after_the_deadline(attacked: Attacked, slow: Slow) -> None:
    """Those, too, that asked for thousands of answers and took none."""
    assert slow.seconds < 3 * max(LIMITS.request_seconds, LIMITS.write_seconds)
    attacked.assert_unharmed()


@pytest.fixture
def descriptors() -> Iterator[None]:
    """Enough open files for this process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = MANY + 200
    if soft < needed and hard != resource.RLIM_INFINITY and hard < needed:
        pytest.skip(f"{needed} open files are needed, {hard} are allowed (ulimit -Hn)")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, needed), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("descriptors")
def test_a_thousand_connections_at_once(attacked: Attacked) -> None:
    """All from one process, all with a request: served, or told to come again, or cut off for another."""
    with contextlib.ExitStack() as stack, selectors.DefaultSelector() as selector:
        for _ in range(MANY):
            sock = stack.enter_context(socket.socket())
            sock.bind((ELSEWHERE, 0))
            sock.setblocking(False)
            sock.connect_ex(("127.0.0.1", attacked.port))
            selector.register(sock, selectors.EVENT_WRITE)
        answers: list[bytes] = []
        deadline = time.monotonic() + PATIENCE
        while len(answers) < MANY:
            assert time.monotonic() < deadline, f"{len(answers)} of {MANY} were answered"
            for key, events in selector.select(1.0):
                assert isinstance(key.fileobj, socket.socket)
                if events & selectors.EVENT_WRITE:
                    with contextlib.suppress(OSError):
                        key.fileobj.send(b"GET /-/ready HTTP/1.1\r\nHost: node\r\nConnection: close\r\n\r\n")
                    selector.modify(key.fileobj, selectors.EVENT_READ)
                else:
                    answers.append(_piece(key.fileobj))
                    selector.unregister(key.fileobj)
            attacked.assert_bounded()
    statuses = [answer[9:12] for answer in answers]
    assert set(statuses) <= {b"200", b"503", b""}  # nothing: it gave way, or was closed on our request
    assert statuses.count(b"200") >= LIMITS.connections_per_client
    attacked.assert_unharmed()


def _piece(sock: socket.socket) -> bytes:
    try:
        return sock.recv(4096)
    except ConnectionError:
        return b""


def test_connections_that_come_and_go(attacked: Attacked) -> None:
    for number in range(200):
        with connect(attacked.port) as sock:
            sock.sendall(GET)
            assert sock.recv(12) == b"HTTP/1.1 200", number
    attacked.assert_bounded()
    attacked.assert_unharmed()
