"""A real HTTPS server that lists and watches as an API server does: versions, bookmarks, 410, tokens, refusals."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from exporter.attribution.kubernetes.credentials import Credentials
from tests.web.conftest import Authority

PODS = "/api/v1/pods"
Json = dict[str, Any]


def status(code: int, message: str) -> Json:
    """What the API server answers when it refuses."""
    return {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "code": code}


class Collection:
    """Objects, and all that happened to them."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str], Json] = {}
        self.events: list[tuple[int, Json]] = []


class ApiDouble:
    """Serves on loopback. ``folder`` gets the certificates and the token file of a service account."""

    def __init__(self, folder: Path) -> None:
        self.authority = Authority(folder, "cluster")
        self._identity = self.authority.issue("kube-apiserver")
        self._token = folder / "token"
        self.credentials = Credentials(self._token, self.authority.cert)
        self.collections: dict[str, Collection] = {PODS: Collection()}
        self.version = 100
        self.oldest = 0  # events before it are forgotten
        self.refuse: int | None = None  # every question is answered with it
        self.says = "no"
        self.hang, self.mute = threading.Event(), threading.Event()  # answers nothing at all; watches say nothing
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.changed = threading.Condition()
        self._cut = 0  # rises when all watches are to end
        self._ending = False
        self.port = 0
        self.rotate("first")
        self._server: ThreadingHTTPServer | None = None

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    def rotate(self, token: str) -> None:
        """Another token is in the file, and is the only one that is known."""
        self.token = token
        self._token.write_text(f"{token}\n")

    def put(self, item: Json, path: str = PODS) -> None:
        """An object is made or changed; with its first object a collection is there."""
        key = (item["metadata"].get("namespace", ""), item["metadata"]["name"])
        there = key in self.collections.setdefault(path, Collection()).objects
        self._happened(path, "MODIFIED" if there else "ADDED", key, item)

    def delete(self, name: str, namespace: str = "ml", path: str = PODS) -> None:
        key = (namespace, name)
        self._happened(path, "DELETED", key, self.collections[path].objects[key])

    def bookmark(self, path: str = PODS) -> None:
        self._happened(path, "BOOKMARK", None, {"kind": "Pod", "metadata": {}})

    def say(self, event: Json, path: str = PODS) -> None:
        """Any event at all."""
        with self.changed:
            self.version += 1
            self.collections[path].events.append((self.version, event))
            self.changed.notify_all()

    def forget(self) -> None:
        """Versions of before now are too old, and running watches end."""
        with self.changed:
            self.version += 1
            self.oldest = self.version
            self._cut += 1
            self.changed.notify_all()

    def cut(self) -> None:
        """Running watches end, as they do after timeoutSeconds."""
        with self.changed:
            self._cut += 1
            self.changed.notify_all()

    def start(self) -> None:
        self._ending = False
        handler = type("Handler", (_Handler,), {"double": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", self.port), handler)
        self._server.daemon_threads = True
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self._identity.cert, self._identity.key)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.port = self._server.server_port
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def stop(self) -> None:
        """Gone: its watches break off, and nobody answers at its port."""
        if self._server is None:
            return
        with self.changed:
            self._ending = True
            self.hang.clear()
            self.changed.notify_all()
        self._server.shutdown()
        self._server.server_close()
        self._server = None

    def watches(self, path: str = PODS) -> int:
        """How often a watch was asked for."""
        return sum(1 for asked, query in self.asked if asked == path and query.get("watch") == "true")

    def lists(self, path: str = PODS) -> int:
        return sum(1 for asked, query in self.asked if asked == path and "watch" not in query)

    def _happened(self, path: str, kind: str, key: tuple[str, str] | None, item: Json) -> None:
        with self.changed:
            self.version += 1
            item = {**item, "metadata": {**item["metadata"], "resourceVersion": str(self.version)}}
            collection = self.collections[path]
            if kind == "DELETED" and key is not None:
                del collection.objects[key]
            elif key is not None:
                collection.objects[key] = item
            collection.events.append((self.version, {"type": kind, "object": item}))
            self.changed.notify_all()

    def following(self, path: str, version: int) -> Iterator[Json]:
        """Events after a version, until the watch is cut."""
        begun, last = self._cut, version
        while True:
            with self.changed:
                new = [] if self.mute.is_set() else [e for e in self.collections[path].events if e[0] > last]
                if not new:
                    if self._ending or self._cut != begun:
                        return
                    self.changed.wait(0.05)
            for happened, event in new:
                yield event
                last = happened


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    double: ApiDouble

    def do_GET(self) -> None:
        with suppress(OSError):  # whoever asked has gone
            self._answer()

    def _answer(self) -> None:
        double, parts = self.double, urlsplit(self.path)
        query = {key: values[-1] for key, values in parse_qs(parts.query).items()}
        double.asked.append((parts.path, query))
        while double.hang.is_set():
            threading.Event().wait(0.02)
        if self.headers["Authorization"] != f"Bearer {double.token}":
            self._document(401, status(401, "Unauthorized"))
        elif double.refuse is not None:
            self._document(double.refuse, status(double.refuse, double.says))
        elif parts.path not in double.collections:
            self._document(404, status(404, "the server could not find the requested resource"))
        elif query.get("watch") == "true":
            self._watch(parts.path, int(query["resourceVersion"]))
        else:
            with double.changed:
                items, version = list(double.collections[parts.path].objects.values()), str(double.version)
            self._document(200, {"kind": "List", "metadata": {"resourceVersion": version}, "items": items})

    def _document(self, code: int, document: Json) -> None:
        body = json.dumps(document).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _watch(self, path: str, version: int) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        if version < self.double.oldest:
            self._chunk({"type": "ERROR", "object": status(410, f"too old resource version: {version}")})
        else:
            for event in self.double.following(path, version):
                self._chunk(event)
        self.wfile.write(b"0\r\n\r\n")

    def _chunk(self, event: Json) -> None:
        line = json.dumps(event).encode() + b"\n"
        half = len(line) // 2  # an event may come in pieces
        for piece in (line[:half], line[half:]):
            self.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")

    def log_message(self, *_: object) -> None:
        """Quiet."""


@contextmanager
def api_server(folder: Path) -> Iterator[ApiDouble]:
    """One that runs, and is stopped at the end."""
    double = ApiDouble(folder)
    double.start()
    try:
        yield double
    finally:
        double.stop()
