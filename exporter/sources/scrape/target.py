"""The URL of a page, checked and parsed."""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass, field
from urllib.parse import SplitResult, unquote, urljoin, urlsplit

EXAMPLE = "http://localhost:9400/metrics"
_ALLOWED = re.compile(r"[!-~]+")  # printable ASCII without spaces: safe in a request line
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class PageTarget:
    """A parsed URL. ``credentials``: the value of an Authorization header, or empty."""

    scheme: str
    host: str
    port: int
    path: str  # with the query
    credentials: str = field(default="", repr=False)

    @property
    def origin(self) -> tuple[str, str, int]:
        """The origin that credentials belong to (RFC 6454)."""
        return (self.scheme, self.host, self.port)

    @property
    def netloc(self) -> str:
        """Host and port, the default port left out: the Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    def __str__(self) -> str:
        """For messages and labels: without credentials, and without the query, which may hold some."""
        return f"{self.scheme}://{self.netloc}{self.path.partition('?')[0]}"


def parse_target(url: str) -> PageTarget:
    """Parse a URL; the path defaults to /metrics. ValueError says what is wrong with it."""
    if not url:
        raise ValueError(f"no URL given; expected one such as {EXAMPLE}")
    if not _ALLOWED.fullmatch(url):
        raise ValueError("the URL has a space or another character that must be percent-encoded")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise ValueError(f"not a URL: {error}; expected one such as {EXAMPLE}") from error
    if parts.scheme not in _PORTS:
        raise ValueError(f"the URL must begin with http:// or https://; expected one such as {EXAMPLE}")
    if not parts.hostname:
        raise ValueError(f"the URL names no host; expected one such as {EXAMPLE}")
    if port == 0:
        raise ValueError("the URL's port is 0")
    path = (parts.path or "/metrics") + (f"?{parts.query}" if parts.query else "")
    return PageTarget(parts.scheme, parts.hostname, port or _PORTS[parts.scheme], path, _credentials(parts))


def redirected(target: PageTarget, location: str) -> PageTarget:
    """The target of a redirect. Credentials stay with their origin. ValueError if it is not followed."""
    found = parse_target(urljoin(f"{target.scheme}://{target.netloc}{target.path}", location))
    if target.scheme == "https" and found.scheme == "http":
        raise ValueError("from https to http")
    own = target.credentials if found.origin == target.origin else ""
    return PageTarget(found.scheme, found.host, found.port, found.path, found.credentials or own)


def _credentials(parts: SplitResult) -> str:
    if parts.username is None and parts.password is None:
        return ""
    pair = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
    return "Basic " + base64.b64encode(pair.encode()).decode()
