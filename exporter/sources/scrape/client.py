"""One GET of one page of text, bounded in time, size and redirects. Standard library only; proxies are not used.

The body must be complete, is decompressed within the size limit, and is refused if it is not a page of metrics.
"""

from __future__ import annotations

import http.client
import io
import socket
import ssl
import zlib
from contextlib import closing
from typing import NamedTuple

from exporter.model import SourceError
from exporter.sources.scrape import errors
from exporter.sources.scrape.target import EXAMPLE, PageTarget, redirected
from exporter.sources.scrape.timed import Deadline, TimedReader, TooLargeError, connect
from exporter.version import VERSION

LIMIT = 8 << 20  # bytes of a page, before and after decompression: 112 MIG instances with 40 fields are 2 MiB
HEADERS = 1 << 16  # bytes around the body: headers, chunk sizes
REDIRECTS = 3
_MOVED = frozenset({301, 302, 303, 307, 308})


class Page(NamedTuple):
    """A fetched page."""

    text: str


class Fetcher:
    """Fetches the page at each call."""

    def __init__(self, target: PageTarget, timeout: float, limit: int = LIMIT) -> None:
        """``timeout``: seconds for everything except the DNS lookup. ``limit``: bytes."""
        self._target = target
        self._timeout = timeout
        self._limit = limit
        self._tls: ssl.SSLContext | None = None

    def __call__(self) -> Page:
        """The page. SourceError: not reached, not in time, not 200, too large, not text, damaged."""
        deadline = Deadline(self._timeout)
        here = self._target
        for _ in range(REDIRECTS + 1):
            try:
                answer = self._exchange(here, deadline)
            except TooLargeError as error:
                raise errors.too_large(here, self._limit) from error
            except (OSError, http.client.HTTPException, ValueError) as error:
                if isinstance(error, ssl.SSLError):
                    self._tls = None  # the file of trusted certificates may have changed: read it again
                raise errors.failed(here, error, self._timeout) from error
            if isinstance(answer, Page):
                return answer
            try:
                here = redirected(here, answer)
            except ValueError as error:
                raise errors.not_followed(here, error) from error
        raise SourceError(f"{self._target} redirects more than {REDIRECTS} times, last to {here}", "use the final URL")

    def _exchange(self, target: PageTarget, deadline: Deadline) -> Page | str:
        """One request and its answer: the page, or the location it has moved to."""
        with self._connected(target, deadline) as sock:
            sock.settimeout(deadline.left())
            sock.sendall(_request(target))
            reader = TimedReader(sock, deadline, self._limit + HEADERS)
            with closing(http.client.HTTPResponse(reader, method="GET")) as response:  # type: ignore[arg-type]
                response.begin()
                if response.status in _MOVED and (location := response.getheader("Location")):
                    return location
                if response.status != 200:
                    raise errors.refused(target, response)
                return Page(text_of(target, response, self._limit))

    def _connected(self, target: PageTarget, deadline: Deadline) -> socket.socket:
        sock = connect(target.host, target.port, deadline)
        if target.scheme == "http":
            return sock
        try:
            sock.settimeout(deadline.left())
            self._tls = self._tls or ssl.create_default_context()
            return self._tls.wrap_socket(sock, server_hostname=target.host)
        except BaseException:
            sock.close()
            raise


def _request(target: PageTarget) -> bytes:
    lines = [
        f"GET {target.path} HTTP/1.1",
        f"Host: {target.netloc}",
        f"User-Agent: honest-gpu-exporter/{VERSION}",
        "Accept: text/plain;version=0.0.4,*/*;q=0.1",
        "Accept-Encoding: gzip",
        "Connection: close",
    ]
    if target.credentials:
        lines.append(f"Authorization: {target.credentials}")
    return "\r\n".join([*lines, "", ""]).encode("ascii")


_PIECE = 1 << 16


def text_of(target: PageTarget, response: http.client.HTTPResponse, limit: int) -> str:
    """The text. Its length on the wire and its final length are at most ``limit`` bytes. Raises SourceError."""
    if response.length is not None and response.length > limit:
        raise errors.too_large(target, limit)
    raw = io.BytesIO()
    while piece := response.read(_PIECE):
        raw.write(piece)
    if response.length:
        raise SourceError(
            f"{target} closed the connection {response.length} bytes before the end", "check that exporter's log"
        )
    encoding = response.getheader("Content-Encoding", "").strip().lower()
    if encoding in ("", "identity"):
        body = raw.getvalue()
    elif encoding in ("gzip", "x-gzip"):
        body = _inflated(target, raw.getvalue(), limit)
    else:
        raise SourceError(
            f"{target} sent an encoding that was not requested: {errors.printable(encoding)}",
            errors.CHECK,
        )
    if len(body) > limit:
        raise errors.too_large(target, limit)
    _refuse_other(target, response.getheader("Content-Type", ""), body)
    return body.decode("utf-8", errors="replace")


def _inflated(target: PageTarget, data: bytes, limit: int) -> bytes:
    """Decompress; never produces more than ``limit`` + 1 bytes."""
    unzip = zlib.decompressobj(wbits=31)
    try:
        plain = unzip.decompress(data, limit + 1)
    except zlib.error as error:
        raise SourceError(f"{target} sent damaged gzip data: {error}", errors.CHECK) from error
    if len(plain) <= limit and (not unzip.eof or unzip.unused_data):
        state = "with data after its end" if unzip.eof else "that is cut off"
        raise SourceError(f"{target} sent gzip data {state}", errors.CHECK)
    return plain


def _refuse_other(target: PageTarget, content_type: str, body: bytes) -> None:
    kind = content_type.partition(";")[0].strip().lower()
    start = body[:64].lstrip()
    if kind == "text/html" or start.startswith(b"<"):
        found = "a web page"
    elif kind == "application/json" or start.startswith((b"{", b"[")):
        found = "JSON"
    elif b"\0" in body:
        found = "binary data"
    else:
        return
    raise SourceError(f"{target} returned {found} instead of metrics", f"use a metrics URL, such as {EXAMPLE}")
