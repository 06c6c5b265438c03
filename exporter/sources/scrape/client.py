"""One GET of one page of text, bounded in time, size and redirects. Standard library only; proxies are not used."""

from __future__ import annotations

import http.client
import socket
import ssl
from contextlib import closing
from typing import NamedTuple

from exporter.model import SourceError
from exporter.sources.scrape import complaints
from exporter.sources.scrape.body import text_of
from exporter.sources.scrape.target import PageTarget, redirected
from exporter.sources.scrape.timed import Deadline, TimedReader, TooLargeError, connect
from exporter.version import VERSION

LIMIT = 8 << 20  # bytes of a page, before and after decompression: 112 MIG instances with 40 fields are 2 MiB
HEADERS = 1 << 16  # bytes around the body: headers, chunk sizes
REDIRECTS = 3
_MOVED = frozenset({301, 302, 303, 307, 308})


class Page(NamedTuple):
    """What was fetched."""

    text: str


class Fetcher:
    """Fetches the page anew at each call."""

    def __init__(self, target: PageTarget, timeout: float, limit: int = LIMIT) -> None:
        """``timeout``: seconds for everything together but the look-up of the host's name. ``limit``: bytes."""
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
                raise complaints.too_large(here, self._limit) from error
            except (OSError, http.client.HTTPException, ValueError) as error:
                if isinstance(error, ssl.SSLError):
                    self._tls = None  # the file of trusted certificates may have changed: read it again
                raise complaints.failed(here, error, self._timeout) from error
            if isinstance(answer, Page):
                return answer
            try:
                here = redirected(here, answer)
            except ValueError as error:
                raise complaints.not_followed(here, error) from error
        raise SourceError(f"{self._target} redirects more than {REDIRECTS} times, last to {here}", "give the final URL")

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
                    raise complaints.refused(target, response)
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
