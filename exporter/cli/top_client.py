"""Gets the document of an exporter for ``top``: one request, no proxy, no redirect, the password only in its header."""

from __future__ import annotations

import base64
import http.client
import json
import ssl
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

from exporter.page.api import PATH, VERSION

PATIENCE = 5.0  # seconds for an answer
MOST_BYTES = 64 * 1024 * 1024  # far above ten minutes of the largest node
_NEAR = "honest-gpu-exporter top --url http://HOST:9836"


class Unreachable(Exception):
    """There is no document; the message says why, and what to do."""


@dataclass(frozen=True)
class Target:
    """An exporter's address. ``credentials``: the value of the Authorization header, empty without."""

    scheme: str
    host: str
    port: int
    path: str
    credentials: str = ""

    def __str__(self) -> str:
        """For people; without the password."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}{self.path}"


def parse_target(url: str) -> Target:
    """From ``http[s]://[USER:PASSWORD@]HOST[:PORT][/PREFIX]``. ValueError says what was expected."""
    parts = urlsplit(url)
    clean = url.isprintable() and " " not in url
    if not clean or parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise ValueError("expected the exporter's address, such as http://127.0.0.1:9836")
    port = parts.port if parts.port is not None else 443 if parts.scheme == "https" else 80
    credentials = ""
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        credentials = f"Basic {base64.b64encode(pair.encode()).decode()}"
    return Target(parts.scheme, parts.hostname, port, parts.path.rstrip("/"), credentials)


def fetch(target: Target, since: float | None = None) -> dict[str, Any]:
    """The document; with the history after ``since`` (Unix seconds). Raises Unreachable."""
    query = "" if since is None else f"?since={since!r}"
    try:
        status, body = _get(target, f"{target.path}{PATH}{query}")
    except ssl.SSLError as error:
        raise Unreachable(
            f"{target}: {error.reason or error}: its certificate must be known here (SSL_CERT_FILE names a CA file)"
        ) from error
    except (OSError, http.client.HTTPException) as error:
        why = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise Unreachable(f"{target} cannot be reached: {why}. Does the exporter run there? {_NEAR}") from error
    if status == 401:
        raise Unreachable(f"{target} wants a user and a password: --url {target.scheme}://USER:PASSWORD@HOST:PORT")
    return _document(target, status, body)


def _get(target: Target, path: str) -> tuple[int, bytes]:
    if target.scheme == "https":
        connection: http.client.HTTPConnection = http.client.HTTPSConnection(target.host, target.port, timeout=PATIENCE)
    else:
        connection = http.client.HTTPConnection(target.host, target.port, timeout=PATIENCE)
    try:
        connection.request("GET", path, headers={"Authorization": target.credentials} if target.credentials else {})
        answer = connection.getresponse()
        return answer.status, answer.read(MOST_BYTES)
    finally:
        connection.close()


def _document(target: Target, status: int, body: bytes) -> dict[str, Any]:
    try:
        made = json.loads(body)
    except ValueError:
        made = None
    if not isinstance(made, dict) or "version" not in made:
        raise Unreachable(f"{target} answers {status}, but not as this exporter does: is it another program?")
    if made["version"] != VERSION:
        raise Unreachable(f"{target} speaks version {made['version']} of the document, this program {VERSION}")
    if status != 200:
        raise Unreachable(f"{target}: {made.get('error', status)}")
    return made
