"""Gets the document of an exporter for ``top``: one request, no proxy, no redirect, within one total time."""

from __future__ import annotations

import base64
import http.client
import json
import socket
import ssl
from contextlib import closing
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

from exporter.page.api import PATH, VERSION
from exporter.sources.scrape.timed import Deadline, TimedReader, TooLargeError, connect

PATIENCE = 5.0  # seconds for everything together, but the look-up of the name
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

    @property
    def netloc(self) -> str:
        """Host and port: the Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    def __str__(self) -> str:
        """For people; without the password."""
        return f"{self.scheme}://{self.netloc}{self.path}"


def parse_target(url: str) -> Target:
    """From ``http[s]://[USER:PASSWORD@]HOST[:PORT][/PREFIX]``. ValueError says what was expected."""
    parts = urlsplit(url)
    clean = url.isascii() and url.isprintable() and " " not in url
    if not clean or parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise ValueError("expected the exporter's address, such as http://127.0.0.1:9836")
    port = parts.port if parts.port is not None else 443 if parts.scheme == "https" else 80
    credentials = ""
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        credentials = f"Basic {base64.b64encode(pair.encode()).decode()}"
    return Target(parts.scheme, parts.hostname, port, parts.path.rstrip("/"), credentials)


def fetch(target: Target, since: float | None = None, patience: float = PATIENCE) -> dict[str, Any]:
    """The document; with the history after ``since`` (Unix seconds). Raises Unreachable after ``patience`` seconds."""
    query = "" if since is None else f"?since={since!r}"
    try:
        status, body = _get(target, f"{target.path}{PATH}{query}", Deadline(patience))
    except ssl.SSLError as error:
        raise Unreachable(
            f"{target}: {error.reason or error}: its certificate is not trusted (SSL_CERT_FILE can name a CA file)"
        ) from error
    except TimeoutError as error:
        raise Unreachable(f"{target} did not answer completely within {patience:g} s") from error
    except TooLargeError as error:
        raise Unreachable(f"{target} answers with more than {MOST_BYTES >> 20} MiB: is it another program?") from error
    except (OSError, http.client.HTTPException) as error:
        why = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise Unreachable(f"{target} cannot be reached: {why}. Is the exporter running there? Try {_NEAR}") from error
    if status == 401:
        raise Unreachable(f"{target} requires a user and a password: --url {target.scheme}://USER:PASSWORD@HOST:PORT")
    return _document(target, status, body)


def _get(target: Target, path: str, deadline: Deadline) -> tuple[int, bytes]:
    with _connected(target, deadline) as sock:
        sock.settimeout(deadline.left())
        sock.sendall(_request(target, path))
        reader = TimedReader(sock, deadline, MOST_BYTES)
        with closing(http.client.HTTPResponse(reader, method="GET")) as response:  # type: ignore[arg-type]
            response.begin()
            return response.status, response.read(MOST_BYTES)


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


def _request(target: Target, path: str) -> bytes:
    lines = [f"GET {path} HTTP/1.1", f"Host: {target.netloc}", "Connection: close"]
    if target.credentials:
        lines.append(f"Authorization: {target.credentials}")
    return "\r\n".join([*lines, "", ""]).encode("ascii")


def _document(target: Target, status: int, body: bytes) -> dict[str, Any]:
    try:
        made = json.loads(body)
    except ValueError:
        made = None
    if not isinstance(made, dict) or "version" not in made:
        raise Unreachable(f"{target} answers {status}, but not like this exporter; is it another program?")
    if made["version"] != VERSION:
        raise Unreachable(
            f"{target} serves version {made['version']} of the document, this program reads version {VERSION}"
        )
    if status != 200:
        raise Unreachable(f"{target}: {made.get('error', status)}")
    return made
