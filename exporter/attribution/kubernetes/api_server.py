"""Asks the API server, over HTTPS with a token. Two questions only: a list, and a watch of what changes after it.

Protocol: Kubernetes API Concepts, "Efficient detection of changes". A list from ``resourceVersion=0`` is answered from
the API server's own memory, by its index of nodes, not from etcd: thousands of nodes may ask at once.
"""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import urlencode

from exporter.attribution.holdings import AttributionError
from exporter.attribution.kubernetes.credentials import Credentials

CONNECT = 10.0  # seconds for a connection, and for each piece of an answer to a list
SILENCE = 90.0  # seconds without a line of a watch: bookmarks come about once a minute
WATCH_FOR = 300  # seconds after which the API server ends a watch, so that connections spread over its replicas anew
MOST_BYTES = 32 * 1024 * 1024  # of a list: 500 pods are some 10 MiB
MOST_LINE = 4 * 1024 * 1024  # of one event: an object is 1.5 MiB at most, which is etcd's limit
_PIECE = 65536
_BROKEN = (OSError, http.client.HTTPException, OverflowError)  # the last one: a chunk longer than any memory
OPENED = "OPENED"  # our own first event of each watch: the API server has agreed to it

Json = dict[str, Any]


class Gone(Exception):
    """The API server does not remember that far back (410): list again."""


class Absent(Exception):
    """There is no such API (404)."""


class ApiServer:
    """A client for one collection; used by one thread, but for ``interrupt``."""

    def __init__(
        self, host: str, port: int, credentials: Credentials, *, connect: float = CONNECT, silence: float = SILENCE
    ) -> None:
        """``connect``, ``silence``: seconds, as the constants of this module."""
        self._host, self._port, self._credentials = host, port, credentials
        self._connect, self._silence = connect, silence
        self._socket: socket.socket | None = None
        self._interrupted = False

    def list(self, path: str, selector: str) -> Json:
        """A whole collection. Raises AttributionError, Absent."""
        deadline = time.monotonic() + 3 * self._connect
        connection = self._open(path, {"fieldSelector": selector, "resourceVersion": "0"})
        try:
            body = bytearray()
            answer = self._answer(connection, path)
            while piece := answer.read1(_PIECE):
                body += piece
                if len(body) > MOST_BYTES:
                    raise AttributionError(f"the API server's list of {path} is longer than {MOST_BYTES} bytes")
                if time.monotonic() > deadline:
                    raise AttributionError(f"the API server's list of {path} took too long", self._reach)
            return _document(bytes(body))
        except _BROKEN as error:
            raise AttributionError(f"the API server stopped answering: {_why(error)}", self._reach) from error
        finally:
            self._close(connection)

    def watch(self, path: str, selector: str, version: str) -> Iterator[Json]:
        """Events after ``version``, until the API server ends the watch or falls silent.

        Raises AttributionError, Absent, Gone.
        """
        query = {
            "fieldSelector": selector,
            "resourceVersion": version,
            "watch": "true",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(WATCH_FOR),
        }
        connection = self._open(path, query)
        try:
            answer = self._agreed(connection, path)
            if self._socket is not None:
                self._socket.settimeout(self._silence)
            yield {"type": OPENED}
            while line := answer.readline(MOST_LINE):
                if not line.endswith(b"\n"):
                    if len(line) >= MOST_LINE:
                        raise AttributionError(f"an event of {path} is longer than {MOST_LINE} bytes")
                    return  # cut off in the middle of an event
                event = _document(line)
                if event.get("type") == "ERROR":
                    self._refuse(path, *_status(event.get("object")))
                yield event
        except TimeoutError:
            return  # nothing came, not even a bookmark: whoever asked connects anew
        except _BROKEN as error:
            raise AttributionError(f"the API server interrupted a watch: {_why(error)}", self._reach) from error
        finally:
            self._close(connection)

    def interrupt(self) -> None:
        """End what is under way, from another thread; nothing is asked any more."""
        self._interrupted = True
        sock = self._socket
        if sock is not None:
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def _open(self, path: str, query: Mapping[str, str]) -> http.client.HTTPSConnection:
        headers = {"Authorization": f"Bearer {self._credentials.bearer()}", "Accept": "application/json"}
        context = self._credentials.context()
        connection = http.client.HTTPSConnection(self._host, self._port, timeout=self._connect, context=context)
        try:
            connection.connect()
            self._socket = connection.sock
            if self._interrupted:
                raise AttributionError("stopped")
            connection.request("GET", f"{path}?{urlencode(query)}", headers=headers)
        except (OSError, http.client.HTTPException) as error:
            self._close(connection)
            raise AttributionError(
                f"the API server at {self._host}:{self._port} cannot be reached: {_why(error)}", self._reach
            ) from error
        return connection

    def _agreed(self, connection: http.client.HTTPSConnection, path: str) -> http.client.HTTPResponse:
        """The answer to a watch: it begins at once, however long nothing changes."""
        try:
            return self._answer(connection, path)
        except TimeoutError as error:
            raise AttributionError("the API server does not answer a watch", self._reach) from error

    def _answer(self, connection: http.client.HTTPSConnection, path: str) -> http.client.HTTPResponse:
        answer = connection.getresponse()
        if answer.status != http.client.OK:
            said = _said(answer.read(_PIECE))
            self._refuse(path, answer.status, said)
        return answer

    def _refuse(self, path: str, status: int, said: str) -> None:
        what = path.rsplit("/", 1)[-1]
        if status == http.client.GONE:
            raise Gone
        if status == http.client.NOT_FOUND:
            raise Absent(f"the API server has no {path}")
        if status == http.client.UNAUTHORIZED:
            raise AttributionError(
                "the API server rejected the token (401)",
                f"check that {self._credentials.token} is a token for this cluster and has not expired",
            )
        if status == http.client.FORBIDDEN:
            group = path.split("/")[2] if path.startswith("/apis/") else ""
            rule = f'{{apiGroups: ["{group}"], resources: [{what}], verbs: [list, watch]}}'
            raise AttributionError(
                f"the API server denied access to {what} (403): {said}",
                f"bind a ClusterRole with the rule {rule} to the service account "
                "(chart: collectors.kubernetes.apiServer.enabled)",
            )
        raise AttributionError(f"the API server returned {status} for {what}: {said}")

    def _close(self, connection: http.client.HTTPSConnection) -> None:
        self._socket = None
        connection.close()

    @property
    def _reach(self) -> str:
        return "check --kubernetes.api-server, and that no network policy blocks the exporter"


def _document(text: bytes) -> Json:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise AttributionError(f"the API server's answer is not JSON: {error}") from error
    if not isinstance(document, dict):
        raise AttributionError("the API server's answer is not a JSON object")
    return document


def _status(document: object) -> tuple[int, str]:
    """Code and message of a Status object."""
    if not isinstance(document, dict):
        return 0, "an error without a status"
    code = document.get("code")
    return code if isinstance(code, int) else 0, str(document.get("message", ""))[:300]


def _said(body: bytes) -> str:
    try:
        return _status(json.loads(body))[1]
    except (ValueError, RecursionError):
        return body[:100].decode("utf-8", errors="replace")


def _why(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not signed by the cluster's CA ({error.verify_message})"
    if isinstance(error, TimeoutError):
        return "no answer in time"
    return str(error) or type(error).__name__
