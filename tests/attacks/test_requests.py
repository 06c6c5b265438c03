"""Requests that mean something else than they seem to: garbage, smuggling, traversal, methods, sizes."""

from __future__ import annotations

import contextlib
import re
import time

import pytest

from tests.attacks.clients import connect, received, said
from tests.attacks.conftest import LIMITS, Attacked

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("attacks")]

STATUS_LINE = re.compile(rb"HTTP/1\.1 ([0-9]{3}) [A-Za-z -]+\r\n")
SECOND = b"GET /-/healthy HTTP/1.1\r\nHost: node\r\n\r\n"


def request(line: bytes = b"GET /-/ready HTTP/1.1", *headers: bytes, body: bytes = b"") -> bytes:
    return b"\r\n".join([line, b"Host: node", *headers, b"", body])


def statuses(answer: bytes) -> list[int]:
    return [int(each) for each in STATUS_LINE.findall(answer)]


SMUGGLED = [
    request(b"POST / HTTP/1.1", b"Content-Length: 6", b"Transfer-Encoding: chunked", body=b"0\r\n\r\n" + SECOND),
    request(b"GET / HTTP/1.1", b"Content-Length: 6", b"Transfer-Encoding: chunked", body=b"0\r\n\r\n" + SECOND),
    request(b"GET / HTTP/1.1", b"Transfer-Encoding: chunked", b"Content-Length: 0", body=SECOND),
    request(b"GET / HTTP/1.1", b"Transfer-Encoding: identity", body=SECOND),
    request(b"GET / HTTP/1.1", b"Transfer-Encoding:\tchunked", body=SECOND),
    request(b"GET / HTTP/1.1", b"Transfer-Encoding : chunked", body=SECOND),
    request(b"GET / HTTP/1.1", b"X: y", b" Transfer-Encoding: chunked", body=SECOND),
    request(b"GET / HTTP/1.1", b"X: y\nTransfer-Encoding: chunked", body=SECOND),
    request(b"GET / HTTP/1.1", b"Content-Length: 0", b"Content-Length: 40", body=SECOND),
    request(b"GET / HTTP/1.1", b"Content-Length: 0, 40", body=SECOND),
    request(b"GET / HTTP/1.1", b"Content-Length: +0", body=SECOND),
    request(b"GET / HTTP/1.1", b"Content-Length: 0x0", body=SECOND),
    request(b"GET / HTTP/1.1", b"Content-Length: \xb2", body=SECOND),
    request(b"GET / HTTP/1.1", b"Content-Length:", body=SECOND),
]


@pytest.mark.parametrize("data", SMUGGLED, ids=range(len(SMUGGLED)))
def test_no_second_request_is_smuggled_in(attacked: Attacked, data: bytes) -> None:
    """Where a request ends is not left to taste: one refusal, and the connection is over."""
    answer = said(attacked.port, data)
    assert len(statuses(answer)) == 1
    assert 400 <= statuses(answer)[0] < 500
    assert b"Healthy: " not in answer
    assert b"Connection: close" in answer


def test_a_body_is_not_a_request(attacked: Attacked) -> None:
    body = request(b"GET / HTTP/1.1", b"Content-Length: %d" % len(SECOND), body=SECOND)
    answer = said(attacked.port, body + request(b"GET /nowhere HTTP/1.1", b"Connection: close"))
    assert statuses(answer) == [200, 404]
    assert b"Healthy: " not in answer


@pytest.mark.parametrize(
    "path",
    [
        b"/../../../../etc/passwd",
        b"/static/../../../../etc/passwd",
        b"/static/%2e%2e/%2e%2e/handlers.py",
        b"/static/..%2fhandlers.py",
        b"/static//etc/passwd",
        b"/static/page.css%00.html",
        b"/static/..\\..\\handlers.py",
        b"//etc/passwd",
        b"/%c0%ae%c0%ae/etc/passwd",
        b"http://node/../etc/passwd",
        b"http://etc/passwd",
        b"/metrics/..",
        b"/-/../metrics",
    ],
)
def test_paths_lead_nowhere(attacked: Attacked, path: bytes) -> None:
    """Paths are looked up in a table, never in a file system."""
    answer = said(attacked.port, request(b"GET %s HTTP/1.1" % path, b"Connection: close"))
    assert statuses(answer) == [404]
    assert b"root:" not in answer


@pytest.mark.parametrize(
    "method", ["POST", "PUT", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PATCH", "get", "DEBUG", "X" * 99]
)
def test_other_methods_do_nothing(attacked: Attacked, method: str) -> None:
    answer = said(attacked.port, request(f"{method} / HTTP/1.1".encode(), b"Cookie: secret"))
    assert statuses(answer) == [405]
    assert b"secret" not in answer


def test_old_and_bare_requests(attacked: Attacked) -> None:
    port = attacked.port
    assert statuses(said(port, b"GET /-/ready HTTP/1.0\r\n\r\n")) == [200]
    assert statuses(said(port, b"GET /-/ready\r\n\r\n")) == [400]
    head = said(port, b"HEAD /metrics HTTP/1.0\r\n\r\n")
    assert statuses(head) == [200]
    assert head.endswith(b"\r\n\r\n")
    assert b"honest_gpu_up" not in head


GARBAGE = [b"\0" * 100_000, b"\xff" * 100_000, b"\r\n" * 50_000, b"\n" * 100_000, b"\x16\x03\x01" + b"\0" * 50_000]


@pytest.mark.parametrize("garbage", GARBAGE, ids=["nul", "ff", "empty lines", "line feeds", "tls"])
def test_garbage_after_a_good_request(attacked: Attacked, garbage: bytes) -> None:
    answer = said(attacked.port, request() + garbage)
    found = statuses(answer)
    assert found in ([200], [200, 400], [200, 414])
    assert answer.count(b"Ready.\n") == 1


def test_a_pipeline_of_a_thousand(attacked: Attacked) -> None:
    """Served in order, up to the bound a connection has."""
    answer = said(attacked.port, request() * (LIMITS.requests_per_connection + 50))
    assert statuses(answer) == [200] * LIMITS.requests_per_connection


@pytest.mark.parametrize(
    ("before", "endless", "status"),
    [
        (b"GET /", b"a" * 65536, 414),
        (b"GET / HTTP/1.1\r\nHost: node\r\nX: ", b"a" * 65536, 431),
        (b"GET / HTTP/1.1\r\nHost: node\r\n", b"X: y\r\n" * 10000, 431),
        (b"POST / HTTP/1.1\r\nHost: node\r\nContent-Length: 1000000000\r\n\r\n", b"a" * 65536, 405),
        (b"GET / HTTP/1.1\r\nHost: node\r\nContent-Length: 1000000000\r\n\r\n", b"a" * 65536, 413),
    ],
    ids=["path", "header", "headers", "body of a POST", "body of a GET"],
)
def test_what_does_not_end_is_cut(attacked: Attacked, before: bytes, endless: bytes, status: int) -> None:
    """64 MiB are offered; the daemon keeps what its limits say, and is done with it within seconds."""
    started = time.monotonic()
    with connect(attacked.port) as sock:
        with contextlib.suppress(ConnectionError):
            sock.sendall(before)
            for _ in range((64 << 20) // len(endless)):
                sock.sendall(endless)
        answer = received(sock)
    assert time.monotonic() - started < LIMITS.request_seconds
    assert statuses(answer) in ([status], [])  # none when the reset overtook it
    attacked.assert_bounded()


def test_nothing_of_it_has_done_harm(attacked: Attacked) -> None:
    attacked.assert_unharmed()
