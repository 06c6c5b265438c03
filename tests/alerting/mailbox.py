"""A webhook that keeps what Alertmanager sends."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass(frozen=True, slots=True)
class Message:
    """One alert of one notification. ``status``: firing or resolved; ``together``: how many alerts came in it."""

    receiver: str
    status: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    together: int

    @property
    def name(self) -> str:
        return self.labels["alertname"]


class Mailbox:
    """All messages so far, in the order in which they came."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._lock = threading.Lock()
        self._messages: list[Message] = []

    def take(self, body: bytes) -> None:
        """One notification in Alertmanager's webhook format."""
        told = json.loads(body)
        with self._lock:
            for each in told["alerts"]:
                together = len(told["alerts"])
                self._messages.append(
                    Message(told["receiver"], each["status"], each["labels"], each["annotations"], together)
                )

    def messages(self, **labels: str) -> list[Message]:
        """Those that have these labels."""
        with self._lock:
            return [message for message in self._messages if labels.items() <= message.labels.items()]


@contextlib.contextmanager
def mailbox() -> Iterator[Mailbox]:
    """Open until the end of the block."""
    held: list[Mailbox] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            held[0].take(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    held.append(Mailbox(f"http://127.0.0.1:{server.server_port}"))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield held[0]
    finally:
        server.shutdown()
        server.server_close()
