"""Requests: any bytes, whole and in pieces, through the parser and through a server's connection."""

from __future__ import annotations

import contextlib
import re
import socket
import threading
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from exporter.web.connection import Connection
from exporter.web.http1 import BadRequest, find_head, parse_head, render
from exporter.web.limits import Event, Limits, Stats
from exporter.web.negotiation import negotiate_encoding, negotiate_format
from exporter.web.routes import Request, Response
from tests.fuzz.budget import fuzzed
from tests.fuzz.mutation import mutated_bytes

REQUEST = (
    b"GET /metrics?a=1&b=%20 HTTP/1.1\r\nHost: node:9836\r\nAccept: application/openmetrics-text;version=1.0.0;q=0.5,"
    b"text/plain;q=0.2,*/*;q=0.1\r\nAccept-Encoding: gzip, *;q=0\r\nContent-Length: 3\r\n"
    b"Connection: keep-alive\r\n\r\nabc"
)
_STATUS_LINE = re.compile(rb"HTTP/1\.1 [0-9]{3} [A-Za-z- ]+\r\nServer: ")
PIECES = (
    *(
        b"\r\n",
        b"\n",
        b"\r",
        b"\r\n\r\n",
        b" ",
        b"\t",
        b":",
        b"\0",
        b"\xff",
        b"%",
        b"%00",
        b"/../",
        b"//",
        b"?",
        b"#",
        b";",
    ),
    *(
        b"Transfer-Encoding: chunked\r\n",
        b"Content-Length: 5\r\n",
        b"Content-Length: +1\r\n",
        b"Host: b\r\n",
        b" folded\r\n",
    ),
    *(
        b"HTTP/1.0",
        b"HTTP/2.0",
        b"http://a/b",
        b"HEAD",
        b"POST",
        b"Connection: close\r\n",
        b"5\r\nhello\r\n0\r\n\r\n",
        b"A" * 9000,
    ),
)


@st.composite
def streams(draw: st.DrawFn) -> bytes:
    """One or several requests, with pieces of protocol put in anywhere, or bytes changed."""
    data = draw(mutated_bytes(REQUEST)) * draw(st.integers(1, 2))
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(data)))
        data = data[:at] + draw(st.sampled_from(PIECES)) + data[at:]
    return data


def respond(request: Request) -> Response:
    kind = negotiate_format(request.headers.get("accept"))
    negotiate_encoding(request.headers.get("accept-encoding"))
    return Response(200, kind.value, b"ok")


@fuzzed(200)
@given(streams() | st.binary(max_size=200))
def test_any_bytes_are_a_request_or_refused(data: bytes) -> None:
    limits, received = Limits(), bytearray(data)
    try:
        length = find_head(received, limits)
        head = parse_head(bytes(received[:length]), "::1", limits) if length else None
    except BadRequest as error:
        render(error.response, head_only=False, keep_alive=False, extra={}, now=0.0)
        return
    if head is None:
        assert len(received) <= limits.header_bytes
        return
    request = head.request
    assert request.method in ("GET", "HEAD")
    assert "transfer-encoding" not in request.headers
    assert 0 <= head.body_length <= limits.body_bytes
    assert len(request.headers) <= limits.header_count
    assert not any(set(value) & set("\r\n\0") for value in request.headers.values())


@fuzzed(100)
@given(streams() | st.binary(max_size=200), st.lists(st.integers(1, 400), max_size=4))
def test_a_connection_ends_whatever_comes(data: bytes, cuts: Sequence[int]) -> None:
    """Each answer is whole, nothing is raised, and no more answers come than requests were there."""
    ours, theirs = socket.socketpair()
    stats = Stats()
    connection = Connection(theirs, "::1", respond, None, Limits(linger_seconds=0.01), stats, threading.Event())
    with ours:
        position = 0
        worker = threading.Thread(target=connection.run)
        worker.start()
        with contextlib.suppress(OSError):  # it may be refused before its end
            for cut in (*cuts, len(data)):
                ours.sendall(data[position : position + cut])
                position += cut
            ours.shutdown(socket.SHUT_WR)
        ours.settimeout(20)
        answers = b""
        with contextlib.suppress(ConnectionError):
            while piece := ours.recv(65536):
                answers += piece
        worker.join(20)
    assert not worker.is_alive()
    assert stats[Event.HANDLER_ERROR] == 0
    assert len(_STATUS_LINE.findall(answers)) == stats[Event.REQUEST] + stats[Event.BAD_REQUEST] or not answers
    assert stats[Event.BAD_REQUEST] <= 1


@fuzzed(200)
@given(st.text(max_size=100))
def test_any_accept_header(header: str) -> None:
    negotiate_format(header)
    negotiate_encoding(header)
