"""From the body of an answer to text: complete, decompressed within bounds, and not something else than metrics."""

from __future__ import annotations

import http.client
import io
import zlib

from exporter.model import SourceError
from exporter.sources.scrape import complaints
from exporter.sources.scrape.target import EXAMPLE, PageTarget

_PIECE = 1 << 16


def text_of(target: PageTarget, response: http.client.HTTPResponse, limit: int) -> str:
    """The text. Its length on the wire and its final length are at most ``limit`` bytes. Raises SourceError."""
    if response.length is not None and response.length > limit:
        raise complaints.too_large(target, limit)
    raw = io.BytesIO()
    while piece := response.read(_PIECE):
        raw.write(piece)
    if response.length:
        raise SourceError(
            f"{target} closed the connection {response.length} bytes before the end", "look at the log of that exporter"
        )
    encoding = response.getheader("Content-Encoding", "").strip().lower()
    if encoding in ("", "identity"):
        body = raw.getvalue()
    elif encoding in ("gzip", "x-gzip"):
        body = _inflated(target, raw.getvalue(), limit)
    else:
        raise SourceError(
            f"{target} answers in an encoding that was not asked for: {complaints.printable(encoding)}",
            complaints.CHECK,
        )
    if len(body) > limit:
        raise complaints.too_large(target, limit)
    _refuse_other(target, response.getheader("Content-Type", ""), body)
    return body.decode("utf-8", errors="replace")


def _inflated(target: PageTarget, data: bytes, limit: int) -> bytes:
    """At most one byte more than ``limit`` is ever made."""
    unzip = zlib.decompressobj(wbits=31)
    try:
        plain = unzip.decompress(data, limit + 1)
    except zlib.error as error:
        raise SourceError(f"the gzip data of {target} is damaged: {error}", complaints.CHECK) from error
    if len(plain) <= limit and (not unzip.eof or unzip.unused_data):
        state = "goes on after its end" if unzip.eof else "is cut off"
        raise SourceError(f"the gzip data of {target} {state}", complaints.CHECK)
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
    raise SourceError(f"{target} answers with {found}, not with metrics", f"give the URL of metrics, such as {EXAMPLE}")
