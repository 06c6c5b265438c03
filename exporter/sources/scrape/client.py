"""One GET of one page of text, bounded in time, in size and in redirects. Standard library only; proxies are not used."""

from __future__ import annotations

import http.client
import io
import socket
import ssl
import zlib
from collections.abc import Callable
from typing import NamedTuple

from exporter.model import SourceError
from exporter.sources.scrape.target import EXAMPLE, Target, redirected
from exporter.sources.scrape.timed import Deadline, TimedReader, connect
from exporter.version import VERSION

LIMIT = 8 << 20  # bytes of a page, before and after decompression: 112 MIG instances with 40 fields are 2 MiB
REDIRECTS = 3
_PIECE = 1 << 16
_EXCERPT = 80  # characters of a failure's body that are quoted
_MOVED = frozenset({301, 302, 303, 307, 308})
_CHECK = "check the URL and that dcgm-exporter runs there; it listens on port 9400 by default"


class Page(NamedTuple):
    """What was fetched."""

    text: str


def fetcher(target: Target, timeout: float, limit: int = LIMIT) -> Callable[[], Page]:
    """A function that fetches the page anew at each call, within ``timeout`` seconds in all, or raises SourceError."""

    def fetch() -> Page:
        return get(target, timeout, limit)

    return fetch


def get(target: Target, timeout: float, limit: int = LIMIT) -> Page:
    """The page, decoded. ``timeout``: seconds for everything together but the look-up of the host's name.

    Raises SourceError: not reached, not in time, not 200, too large, not text, damaged.
    """
    deadline = Deadline(timeout)
    here = target
    for _ in range(REDIRECTS + 1):
        try:
            answer = _exchange(here, deadline, limit)
        except (OSError, http.client.HTTPException) as error:
            raise _failure(here, error, timeout) from error
        if isinstance(answer, Page):
            return answer
        try:
            here = redirected(here, answer)
        except ValueError as error:
            raise SourceError(f"{here} redirects in a way that is not followed: {error}", _CHECK) from error
    raise SourceError(f"{target} redirects more than {REDIRECTS} times, last to {here}", "give the final URL")


def _exchange(target: Target, deadline: Deadline, limit: int) -> Page | str:
    """One request and its answer: the page, or the location it has moved to."""
    sock = _connected(target, deadline)
    try:
        sock.settimeout(deadline.left())
        sock.sendall(_request(target))
        response = http.client.HTTPResponse(TimedReader(sock, deadline), method="GET")  # type: ignore[arg-type]
        response.begin()
        if response.status in _MOVED and (location := response.getheader("Location")):
            return location
        if response.status != 200:
            raise _refused(target, response)
        return Page(_text(target, response, _body(target, response, limit)))
    finally:
        sock.close()


def _connected(target: Target, deadline: Deadline) -> socket.socket:
    sock = connect(target.host, target.port, deadline)
    if target.scheme == "http":
        return sock
    try:
        sock.settimeout(deadline.left())
        return ssl.create_default_context().wrap_socket(sock, server_hostname=target.host)
    except BaseException:
        sock.close()
        raise


def _request(target: Target) -> bytes:
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


def _body(target: Target, response: http.client.HTTPResponse, limit: int) -> bytes:
    """The body, decompressed. Both its length on the wire and its final length are at most ``limit``."""
    too_large = SourceError(f"the page of {target} is larger than {limit >> 10} KiB", f"is it the right page? {_CHECK}")
    if response.length is not None and response.length > limit:
        raise too_large
    raw = io.BytesIO()
    while piece := response.read(_PIECE):
        raw.write(piece)
        if raw.tell() > limit:
            raise too_large
    if response.length:
        raise SourceError(f"{target} closed the connection {response.length} bytes before the end", _CHECK)
    encoding = response.getheader("Content-Encoding", "identity").strip().lower()
    if encoding in ("identity", ""):
        return raw.getvalue()
    if encoding not in ("gzip", "x-gzip"):
        raise SourceError(f"{target} answers in the encoding {encoding[:20]!r}, which was not asked for", _CHECK)
    unzip = zlib.decompressobj(wbits=31)
    try:
        plain = unzip.decompress(raw.getvalue(), limit + 1)
    except zlib.error as error:
        raise SourceError(f"the gzip data of {target} is damaged: {error}", _CHECK) from error
    if len(plain) > limit:
        raise too_large
    if not unzip.eof or unzip.unused_data:
        raise SourceError(f"the gzip data of {target} {'goes on after its' if unzip.eof else 'has no'} end", _CHECK)
    return plain


def _text(target: Target, response: http.client.HTTPResponse, body: bytes) -> str:
    kind = response.getheader("Content-Type", "").partition(";")[0].strip().lower()
    start = body[:256].lstrip().lower()
    if kind == "text/html" or start.startswith((b"<!doctype", b"<html")):
        raise SourceError(f"{target} answers with a web page, not with metrics", f"the URL looks like {EXAMPLE}")
    if kind == "application/json" or start.startswith(b"{"):
        raise SourceError(f"{target} answers with JSON, not with metrics", f"the URL looks like {EXAMPLE}")
    if b"\0" in body:
        raise SourceError(f"{target} answers with binary data, not with metrics", f"the URL looks like {EXAMPLE}")
    return body.decode("utf-8", errors="replace")


def _refused(target: Target, response: http.client.HTTPResponse) -> SourceError:
    """What to say of a status other than 200."""
    status = response.status
    remedies = {401: "give user and password in the URL", 403: "give user and password in the URL", 404: _CHECK}
    remedy = remedies.get(status, "look at the log of that exporter" if status >= 500 else _CHECK)
    return SourceError(f"{target} answers {status} {_printable(response.reason)}{_excerpt(response)}", remedy)


def _excerpt(response: http.client.HTTPResponse) -> str:
    """The beginning of a plain body, if it is there in time."""
    kind = response.getheader("Content-Type", "text/plain").partition(";")[0].strip().lower()
    if kind != "text/plain" or response.getheader("Content-Encoding"):
        return ""
    try:
        text = _printable(response.read(_EXCERPT).decode("utf-8", errors="replace"))
    except (OSError, http.client.HTTPException):
        return ""
    return f": {text}" if text else ""


def _printable(text: str) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())[:_EXCERPT]


def _failure(target: Target, error: OSError | http.client.HTTPException, timeout: float) -> SourceError:
    """What to say of an exchange that came to no answer."""
    if isinstance(error, TimeoutError):
        return SourceError(
            f"no complete answer from {target} within {timeout:g} s", f"look at that exporter; time `curl {target}`"
        )
    if isinstance(error, socket.gaierror):
        return SourceError(f"the host {target.host} is not known: {error.strerror}", "check the name in the URL")
    if isinstance(error, ConnectionRefusedError):
        return SourceError(f"nothing listens on {target.host} port {target.port}", _CHECK)
    if isinstance(error, ssl.SSLCertVerificationError):
        why = error.verify_message
        return SourceError(f"the certificate of {target} is not trusted: {why}", "name its CA in SSL_CERT_FILE")
    if isinstance(error, ssl.SSLError):
        return SourceError(f"no TLS with {target}: {error.reason or error}", "try http:// if it has no TLS")
    if isinstance(error, http.client.HTTPException):
        detail = _printable(f"{type(error).__name__} {error}")
        return SourceError(f"{target} gives no proper HTTP answer: {detail}", _CHECK)
    return SourceError(f"{target} cannot be read: {error.strerror or error}", _CHECK)
