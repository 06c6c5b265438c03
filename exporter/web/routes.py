"""What a handler gets and gives, and the table from path to handler.

Probes and basic auth: when the web configuration file names users, every path asks for credentials, `/-/healthy`
and `/-/ready` included. Prometheus exporter-toolkit does the same, and a path that skips the check is a hole that
somebody forgets. A Kubernetes probe then sends the header itself (`httpGet.httpHeaders: Authorization`) or is a
`tcpSocket` probe.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias


@dataclass(frozen=True)
class Request:
    """One request, already checked by the server.

    method: GET or HEAD. path: decoded, without the query. query: every value of every key, in order.
    headers: lower-case names; repeated ones joined by ", ". client: the peer's address, without the port.
    """

    method: str
    path: str
    query: Mapping[str, list[str]]
    headers: Mapping[str, str]
    client: str


@dataclass(frozen=True)
class Response:
    """One response. The server adds Content-Length, Date, Server and Connection, and drops the body of a HEAD."""

    status: int
    content_type: str
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


Handler: TypeAlias = Callable[[Request], Response]


def text_response(status: int, text: str, headers: Mapping[str, str] | None = None) -> Response:
    """A short plain-text answer, for errors and probes."""
    return Response(status, "text/plain; charset=utf-8", f"{text}\n".encode(), dict(headers or {}))


class Routes:
    """An application made of exact paths. An unknown path is a 404 that names the known ones."""

    def __init__(self, handlers: Mapping[str, Handler]) -> None:
        self._handlers = dict(handlers)

    def __call__(self, request: Request) -> Response:
        handler = self._handlers.get(request.path)
        if handler is None:
            return text_response(404, f"Not found. Available: {', '.join(sorted(self._handlers))}")
        return handler(request)
