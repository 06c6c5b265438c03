"""HTTP/1.1 as far as an exporter needs it: the head of a GET or HEAD request in, a response out. No I/O.

Strict where leniency is a hole (RFC 9112): no folded headers, no bare line feeds, no second Host, Authorization or
Content-Length. `http.server` is not used: it has no total deadline, and takes what this refuses.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import parse_qs, unquote

from exporter.web.limits import Limits
from exporter.web.routes import Request, Response, text_response

_END = b"\r\n\r\n"
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+\Z")
_TARGET = re.compile(r"[!-~]+\Z")
_FORBIDDEN_IN_VALUE = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_ONCE_ONLY = frozenset({"host", "content-length", "authorization"})
_MOST_QUERY_FIELDS = 64
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


class BadRequest(Exception):
    """A request that is answered with `response`, after which the connection is closed."""

    def __init__(self, status: int, text: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(text)
        self.response = text_response(status, text, headers)


@dataclass(frozen=True)
class Head:
    """A parsed request head. body_length: bytes that follow it. keep_alive: the client would send another request."""

    request: Request
    body_length: int
    keep_alive: bool


def find_head(received: bytearray, limits: Limits) -> int:
    """Bytes of the head at the start of what came in so far; 0 when its end has not come yet.

    Raises BadRequest (414 or 431) as soon as it is too long.
    """
    while received.startswith(b"\r\n"):  # RFC 9112 2.2: an empty line in front is ignored
        del received[:2]
    line = received.find(b"\r\n", 0, limits.request_line_bytes + 2)
    if line < 0 and len(received) > limits.request_line_bytes:
        raise BadRequest(414, f"The request line is longer than {limits.request_line_bytes} bytes.")
    end = received.find(_END, 0, limits.header_bytes + len(_END))
    if end < 0 and len(received) > limits.header_bytes:
        raise BadRequest(431, f"The request headers are longer than {limits.header_bytes} bytes.")
    return end + len(_END) if end >= 0 else 0


def parse_head(head: bytes, client: str, limits: Limits) -> Head:
    """The request in a complete head, its final empty line included. Raises BadRequest."""
    request_line, *lines = head.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
    method, target, version = _request_line(request_line)
    headers = _headers(lines, limits)
    if method not in ("GET", "HEAD"):
        raise BadRequest(405, "Only GET and HEAD are supported.", {"Allow": "GET, HEAD"})
    if version == "HTTP/1.1" and "host" not in headers:
        raise BadRequest(400, "The Host header is missing.")
    path, _, query = target.partition("?")
    try:
        fields = parse_qs(query, keep_blank_values=True, max_num_fields=_MOST_QUERY_FIELDS)
    except ValueError as error:
        raise BadRequest(400, f"The query has more than {_MOST_QUERY_FIELDS} fields.") from error
    options = {option.strip().lower() for option in headers.get("connection", "").split(",")}
    return Head(
        request=Request(method, unquote(path), fields, headers, client),
        body_length=_body_length(headers, limits),
        keep_alive="keep-alive" in options if version == "HTTP/1.0" else "close" not in options,
    )


def render(response: Response, *, head_only: bool, keep_alive: bool, extra: Mapping[str, str], now: float) -> bytes:
    """The bytes of a response. extra: headers of the configuration. now: seconds since the epoch, for Date.

    Raises ValueError when a header cannot be sent (a line break in it).
    """
    reason = HTTPStatus(response.status).phrase
    fields = {
        "Server": "honest-gpu-exporter",
        "Date": _date(now),
        "Content-Type": response.content_type,
        "Content-Length": str(len(response.body)),
        "Connection": "keep-alive" if keep_alive else "close",
        **extra,
        **response.headers,
    }
    for name, value in fields.items():
        if not _TOKEN.match(name) or _FORBIDDEN_IN_VALUE.search(value):
            raise ValueError(f"response header {name!r} has a value that HTTP cannot carry: {value!r}")
    lines = [f"HTTP/1.1 {response.status} {reason}", *(f"{name}: {value}" for name, value in fields.items())]
    head = ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
    return head if head_only else head + response.body


def _request_line(line: str) -> tuple[str, str, str]:
    parts = line.split(" ")
    if len(parts) != 3 or not _TOKEN.match(parts[0]) or not _TARGET.match(parts[1]):
        raise BadRequest(400, "Not an HTTP request.")
    method, target, version = parts
    if version not in ("HTTP/1.0", "HTTP/1.1"):
        raise BadRequest(505 if version.startswith("HTTP/") else 400, "Only HTTP/1.0 and HTTP/1.1 are supported.")
    if not target.startswith("/"):  # what a proxy sends: http://host/path
        scheme, _, rest = target.partition("://")
        if scheme.lower() not in ("http", "https"):
            raise BadRequest(400, "The request target is not a path.")
        host_and_query, mark, query = rest.partition("?")
        target = "/" + host_and_query.partition("/")[2] + mark + query
    return method, target, version


def _headers(lines: list[str], limits: Limits) -> dict[str, str]:
    if len(lines) > limits.header_count:
        raise BadRequest(431, f"More than {limits.header_count} request headers.")
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not _TOKEN.match(name) or _FORBIDDEN_IN_VALUE.search(value):
            raise BadRequest(400, "Malformed request header.")
        name, value = name.lower(), value.strip(" \t")
        if name in headers and name in _ONCE_ONLY:
            raise BadRequest(400, f"More than one {name} header.")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers


def _body_length(headers: Mapping[str, str], limits: Limits) -> int:
    if "transfer-encoding" in headers:
        raise BadRequest(411, "A body of unknown length is not accepted.")
    text = headers.get("content-length", "0")
    if not (text.isascii() and text.isdigit()):
        raise BadRequest(400, "Content-Length is not a number.")
    if len(text) > 9 or int(text) > limits.body_bytes:
        raise BadRequest(413, f"A body of more than {limits.body_bytes} bytes is not accepted.")
    return int(text)


def _date(now: float) -> str:
    """IMF-fixdate. Not strftime (it follows the locale), nor email.utils (it loads a mail library)."""
    at = time.gmtime(now)
    clock = f"{at.tm_hour:02}:{at.tm_min:02}:{at.tm_sec:02}"
    return f"{_DAYS[at.tm_wday]}, {at.tm_mday:02} {_MONTHS[at.tm_mon - 1]} {at.tm_year} {clock} GMT"
