"""What the web server answers for the page: the page itself, its style and script, and the JSON document."""

from __future__ import annotations

import gzip
import html
import json
import math
import zlib
from collections.abc import Callable
from pathlib import Path

from exporter.core.snapshot import Snapshot
from exporter.page import api
from exporter.page.history import History
from exporter.version import VERSION
from exporter.web.negotiation import Encoding, negotiate_encoding
from exporter.web.routes import Handler, Request, Response

GZIP_LEVEL = 1
# Nothing from elsewhere and nothing inline: a name that a pod or a driver chose cannot become a script.
SECURITY = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
STATIC = {
    "page.css": "text/css; charset=utf-8",
    **dict.fromkeys(("page.js", "gpu.js", "chart.js", "dom.js"), "text/javascript; charset=utf-8"),
}
ICON = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><rect width="16" height="16" rx="3" fill="#1b1f24"/>'
    '<path d="M3 3h10v3H3z" fill="#56b4e9"/><path d="M3 9h4v4H3z" fill="#2fc598"/>'
    '<path d="M7.5 9.5h5v3h-5z" fill="none" stroke="#ff8a4a"/></svg>'
)
NOT_YET = "The first sampling window has not closed yet."
_JSON = "application/json; charset=utf-8"


def page_handlers(current: Callable[[], Snapshot | None], history: History, telemetry_path: str) -> dict[str, Handler]:
    """Path -> handler. ``current``: the last Snapshot; None before the first window."""
    index = _file("index.html").decode()
    for mark, text in (("{telemetry}", telemetry_path.lstrip("/") or "."), ("{version}", VERSION)):
        index = index.replace(mark, html.escape(text))
    return {
        "/": _constant(index.encode(), "text/html; charset=utf-8"),
        **{f"/static/{name}": _constant(_file(name), kind) for name, kind in STATIC.items()},
        "/static/icon.svg": _constant(ICON.encode(), "image/svg+xml"),
        api.PATH: _snapshot(current, history),
    }


def _file(name: str) -> bytes:
    return Path(__file__).with_name(name).read_bytes()


def _constant(body: bytes, content_type: str) -> Handler:
    """The same bytes each time; asked for again at each visit, sent again only when they differ."""
    tag = f'"{VERSION}-{len(body)}-{zlib.crc32(body):08x}"'  # hashlib would load OpenSSL, for nothing else
    headers = {"ETag": tag, "Cache-Control": "no-cache", **SECURITY}
    unchanged = {**headers, "Content-Length": str(len(body))}  # RFC 9110 8.6: that of the body it stands for

    def answer(request: Request) -> Response:
        if _matches(request.headers.get("if-none-match", ""), tag):
            return Response(304, content_type, b"", unchanged)
        return Response(200, content_type, body, headers)

    return answer


def _matches(asked: str, tag: str) -> bool:
    """RFC 9110 13.1.2, weak comparison."""
    return any(each.strip().removeprefix("W/") in (tag, "*") for each in asked.split(","))


def _snapshot(current: Callable[[], Snapshot | None], history: History) -> Handler:
    def answer(request: Request) -> Response:
        try:
            since = _since(request)
        except ValueError as error:
            return _json(request, 400, {"version": api.VERSION, "error": str(error)})
        snapshot, freshness = current(), history.freshness()
        if snapshot is None or freshness is None:
            return _json(request, 503, {"version": api.VERSION, "error": NOT_YET}, {"Retry-After": "1"})
        if since is not None and since > snapshot.timestamp:
            since = 0.0  # the clock was set back, or the client watched another exporter here: all of it again
        points = None if since is None else history.since(since)
        return _json(request, 200, api.document(snapshot, freshness, points))

    return answer


def _since(request: Request) -> float | None:
    """None when no history is asked for. Raises ValueError."""
    texts = request.query.get("since")
    if not texts:
        return None
    try:
        since = float(texts[-1])
    except ValueError:
        since = math.nan
    if not math.isfinite(since):
        raise ValueError("since: expected Unix seconds, such as 0 for all that is kept")
    return since


def _json(request: Request, status: int, made: api.Json, extra: dict[str, str] | None = None) -> Response:
    body = json.dumps(made, allow_nan=False, separators=(",", ":")).encode()
    headers = {"Cache-Control": "no-store", "Vary": "Accept-Encoding", **SECURITY, **(extra or {})}
    if negotiate_encoding(request.headers.get("accept-encoding")) is Encoding.GZIP:
        body = gzip.compress(body, compresslevel=GZIP_LEVEL, mtime=0)
        headers["Content-Encoding"] = Encoding.GZIP.value
    return Response(status, _JSON, body, headers)
