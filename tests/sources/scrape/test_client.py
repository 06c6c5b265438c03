"""The fetch, against servers on loopback that behave badly: bounded, and clear about what went wrong."""

from __future__ import annotations

import gc
import gzip
import socket
import ssl
import tracemalloc
import warnings
from pathlib import Path

import pytest

from exporter.model import SourceError
from exporter.sources.scrape.client import Fetcher
from exporter.sources.scrape.target import parse_target
from tests.sources.scrape.servers import Answer, drips, reply, says, serving, silent
from tests.web.conftest import Authority

LONG = 10.0  # seconds: not reached by answers that come
SHORT = 0.3
LIMIT = 1 << 16
PAGE = b'up{a="b"} 1\n'
GZIP = "Content-Encoding: gzip"


def fetch(answer: Answer, timeout: float = LONG, path: str = "/metrics", credentials: str = "") -> str:
    with serving(answer) as address:
        return Fetcher(parse_target(f"http://{credentials}{address}{path}"), timeout, LIMIT)().text


def error(answer: Answer, timeout: float = LONG, path: str = "/metrics") -> SourceError:
    with pytest.raises(SourceError) as caught:
        fetch(answer, timeout, path)
    assert caught.value.remedy
    return caught.value


def test_a_page_and_what_is_asked_for() -> None:
    asked: list[bytes] = []

    def answer(connection: socket.socket, request: bytes) -> None:
        asked.append(request)
        connection.sendall(reply(PAGE, "200 OK", "Content-Type: text/plain; version=0.0.4"))

    assert fetch(answer, path="/m?x=1", credentials="me:secret@") == PAGE.decode()
    lines = asked[0].decode().split("\r\n")
    assert lines[0] == "GET /m?x=1 HTTP/1.1"
    assert "Authorization: Basic bWU6c2VjcmV0" in lines
    assert "Connection: close" in lines
    assert any(line.startswith("Host: 127.0.0.1:") for line in lines)


@pytest.mark.parametrize(
    "data",
    [
        b"HTTP/1.0 200 OK\r\n\r\n" + PAGE,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n"
        + PAGE[:5]
        + b"\r\n7\r\n"
        + PAGE[5:]
        + b"\r\n0\r\n\r\n",
        reply(gzip.compress(PAGE, mtime=0), "200 OK", GZIP),
        b"HTTP/1.1 100 Continue\r\n\r\n" + reply(PAGE),
        reply(PAGE, "200 OK", "Content-Type: application/octet-stream"),
    ],
    ids=["http/1.0", "chunked", "gzip", "continue", "odd type"],
)
def test_pages_in_other_forms(data: bytes) -> None:
    assert fetch(says(data)) == PAGE.decode()


def test_what_is_not_utf8_is_replaced() -> None:
    assert fetch(says(reply(b'a{b="\xff"} 1'))) == 'a{b="\ufffd"} 1'


def test_the_end_of_the_page_may_be_at_the_limit_but_not_behind_it() -> None:
    assert len(fetch(says(reply(b"#" * LIMIT)))) == LIMIT
    assert "larger than 64 KiB" in str(error(says(reply(b"#" * (LIMIT + 1)))))
    assert len(fetch(says(reply(gzip.compress(b"#" * LIMIT, mtime=0), "200 OK", GZIP)))) == LIMIT
    assert "larger than 64 KiB" in str(error(says(reply(gzip.compress(b"#" * (LIMIT + 1)), "200 OK", GZIP))))


@pytest.mark.parametrize(
    ("status", "remedy"),
    [
        ("500 Internal Server Error", "log"),
        ("503 Service Unavailable", "log"),
        ("404 Not Found", "9400"),
        ("401 Unauthorized", "password"),
        ("403 Forbidden", "password"),
        ("204 No Content", "9400"),
        ("304 Not Modified", "9400"),
        ("302 Found", "9400"),  # without saying where
    ],
)
def test_other_statuses_are_quoted(status: str, remedy: str) -> None:
    raised = error(says(reply(b"", status)))
    assert f"returned {status}" in str(raised)
    assert remedy in raised.remedy


def test_a_failure_s_own_words_are_quoted_but_not_a_page_of_them() -> None:
    assert str(error(says(reply(b"no\x1b[31m GPU\n here" + b"x" * 999, "500 Oops")))).endswith(
        "returned 500 Oops: no [31m GPU here" + "x" * 63
    )
    assert str(error(says(reply(b"<html>", "500 Oops", "Content-Type: text/html")))).endswith("returned 500 Oops")
    assert str(error(says(reply(b"zip", "500 Oops", GZIP)))).endswith("returned 500 Oops")
    assert str(error(drips(reply(b"", "500 Oops", length=9)), SHORT)).endswith("returned 500 Oops")


@pytest.mark.parametrize(
    ("body", "kind", "found"),
    [
        (b"<!DOCTYPE html><html>", "text/html; charset=utf-8", "a web page"),
        (b"plain", "text/html", "a web page"),
        (b"\n <html>", "text/plain", "a web page"),
        (b"<?xml version='1.0'?>", "application/xml", "a web page"),
        (b'{"a": 1}', "text/plain", "JSON"),
        (b"[]", "application/json", "JSON"),
        (b"up 1\n\0\0", "text/plain", "binary data"),
    ],
)
def test_what_is_not_metrics_is_refused(body: bytes, kind: str, found: str) -> None:
    raised = error(says(reply(body, "200 OK", f"Content-Type: {kind}")))
    assert f"returned {found} instead of metrics" in str(raised)
    assert "/metrics" in raised.remedy


@pytest.mark.parametrize(
    "answer",
    [
        silent,
        drips(b"", b"HTTP/1.1 200 OK\r\n"),
        drips(b"HTTP/1.1 200 OK\r\n", b"A: b\r\n"),
        drips(b"", b"HTTP/1.1 100 Continue\r\n\r\n", every=0.001),
        drips(reply(b"", length=9999), b"#"),
        drips(b"HTTP/1.1 200 OK\r\n\r\n", b"#"),
        drips(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\n#\r\n"),
    ],
    ids=["silent", "status", "headers", "continue for ever", "body", "body without end", "chunks"],
)
def test_nothing_stretches_the_total_time(answer: Answer) -> None:
    assert "no complete answer" in str(error(answer, SHORT))
    assert "within 0.3 s" in str(error(answer, SHORT))


def test_a_silent_peer_in_the_handshake_of_tls_does_not_stretch_it_either() -> None:
    with serving(silent) as address, pytest.raises(SourceError, match="no complete answer"):
        Fetcher(parse_target(f"https://{address}/"), SHORT)()


@pytest.mark.parametrize(
    "data",
    [
        b"HTTP/1.1 200 OK\r\n\r\n" + b"#" * (LIMIT << 2),
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + (b"fff\r\n" + b"#" * 4095 + b"\r\n") * 100,
        reply(b"", length=1 << 40),
        reply(gzip.compress(b"\0" * (40 << 20)), "200 OK", GZIP),
    ],
    ids=["no length", "chunks", "announced", "gzip bomb"],
)
def test_nothing_grows_without_bounds(data: bytes) -> None:
    assert "larger than 64 KiB" in str(error(says(data)))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (reply(gzip.compress(PAGE, mtime=0)[:-5], "200 OK", GZIP), "gzip data .* is cut off"),
        (reply(gzip.compress(PAGE, mtime=0) + b"more", "200 OK", GZIP), "with data after its end"),
        (reply(gzip.compress(PAGE, mtime=0)[:10] + b"\xff" * 20, "200 OK", GZIP), "damaged gzip data"),
        (reply(b"", "200 OK", GZIP), "gzip data .* is cut off"),
        (reply(PAGE, "200 OK", GZIP), "damaged gzip data"),
        (reply(PAGE, "200 OK", "Content-Encoding: br"), "encoding that was not requested: br"),
        (reply(PAGE, length=len(PAGE) + 7), "7 bytes before the end"),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nup",
            "did not send a valid HTTP response: IncompleteRead",
        ),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nup", "did not send a valid HTTP response"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-7\r\nup", "did not send a valid HTTP response"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "did not send a valid HTTP response: BadStatusLine"),
        (b"", "cannot be read: Remote end closed connection"),
        (b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 999, "did not send a valid HTTP response"),
        (b"HTTP/1.1 200 OK\r\nA: " + b"b" * 70000, "did not send a valid HTTP response: LineTooLong"),
    ],
)
def test_damage_is_named(data: bytes, words: str) -> None:
    error_text = error(says(data))
    with pytest.raises(SourceError, match=words):
        raise error_text


def test_a_gzip_bomb_is_not_unpacked_to_be_refused() -> None:
    bomb = reply(gzip.compress(b"\0" * (40 << 20)), "200 OK", GZIP)
    tracemalloc.start()
    try:
        error(says(bomb))
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()


def test_no_connection_is_left_open() -> None:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always", ResourceWarning)
        fetch(says(reply(PAGE)))
        error(says(reply(PAGE, "500 Oops")))
        error(silent, SHORT)
        gc.collect()
    assert [str(warning.message) for warning in seen] == []


def test_a_chunk_of_negative_size_is_no_way_around_the_limit() -> None:
    raised = error(says(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n" + b"#" * (LIMIT << 2)))
    assert "larger than" in str(raised) or "did not send a valid HTTP response" in str(
        raised
    )  # by the version of Python


def test_redirects_are_followed_for_a_while() -> None:
    def answer(connection: socket.socket, request: bytes) -> None:
        count = int(request.split()[1][1:])
        moved = reply(b"", "302 Found", f"Location: /{count - 1}")
        connection.sendall(moved if count else reply(PAGE))

    assert fetch(answer, path="/3") == PAGE.decode()
    raised = error(answer, path="/4")
    assert "redirects more than 3 times" in str(raised)


def test_a_redirect_elsewhere_is_refused() -> None:
    raised = error(says(reply(b"", "301 Moved", "Location: ftp://h/a")))
    assert "is not followed: " in str(raised)


def test_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(SourceError, match=f"nothing listens on 127.0.0.1 port {port}"):
        Fetcher(parse_target(f"http://127.0.0.1:{port}/"), LONG)()


def test_a_name_that_is_not_known() -> None:
    with pytest.raises(SourceError, match=r"cannot resolve host node\.invalid"):
        Fetcher(parse_target("http://node.invalid/"), LONG)()


def test_the_certificate_must_be_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    authority = Authority(tmp_path, "scraped")
    identity = authority.issue("server")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(identity.cert, identity.key)
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    with serving(says(reply(PAGE)), context) as address:
        fetcher = Fetcher(parse_target(f"https://{address}/"), LONG)
        with pytest.raises(SourceError, match="is not trusted") as caught:
            fetcher()
        assert "SSL_CERT_FILE" in caught.value.remedy
        monkeypatch.setenv("SSL_CERT_FILE", str(authority.cert))
        assert fetcher().text == PAGE.decode()
        assert fetcher().text == PAGE.decode()


def test_https_to_a_server_without_tls() -> None:
    with serving(says(reply(PAGE))) as address, pytest.raises(SourceError, match="TLS handshake with") as caught:
        Fetcher(parse_target(f"https://{address}/"), LONG)()
    assert "http://" in caught.value.remedy
