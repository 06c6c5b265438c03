"""What the web server answers: /metrics, the probes, the page and its document. Everything comes from memory."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping

from exporter.core.snapshot import Snapshot
from exporter.exposition import Rendered, Representation
from exporter.metrics.family import Family, Sample
from exporter.page.handlers import page_handlers
from exporter.page.history import History
from exporter.web.negotiation import Encoding, Format, negotiate_encoding, negotiate_format
from exporter.web.routes import Handler, Request, Response, text_response

AHEAD_FOR = 300.0  # seconds for which a form that was asked for is rendered ahead of the next scrape
AHEAD_EVERY = 0.9  # seconds between renderings ahead: faster sampling does not pay for each of its windows


class Published:
    """Holds the last Snapshot. Swapped as one, so that a scrape sees one Snapshot only.

    Forms that somebody scrapes are rendered when a Snapshot is published, so that the scrape finds bytes; others when
    they are asked for. ``history`` is what the page draws.
    """

    def __init__(
        self,
        collect: Callable[[Snapshot], Mapping[Family, list[Sample]]],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._collect = collect
        self._now = now
        self._rendered: Rendered | None = None
        self._asked: dict[Representation, float] = {}  # form -> when it was last scraped
        self._ahead = float("-inf")
        self._first = threading.Event()
        self.history = History(now)

    def publish(self, snapshot: Snapshot) -> None:
        """Make ``snapshot`` the current one."""
        rendered, now = Rendered(snapshot, self._collect), self._now()
        if now - self._ahead >= AHEAD_EVERY:
            self._ahead = now
            for form, asked in list(self._asked.items()):
                if now - asked < AHEAD_FOR:
                    rendered.get(form)
        self.history.add(snapshot)
        self._rendered = rendered
        self._first.set()

    def scrape(self, form: Representation) -> bytes | None:
        """The exposition of the current Snapshot; None before the first window."""
        if self._rendered is None:
            return None
        self._asked[form] = self._now()
        return self._rendered.get(form)

    @property
    def current(self) -> Rendered | None:
        """None before the first window."""
        return self._rendered

    def wait(self, timeout: float) -> bool:
        """Wait for the first Snapshot."""
        return self._first.wait(timeout)


def endpoints(published: Published, telemetry_path: str) -> dict[str, Handler]:
    """Path -> handler."""

    def metrics(request: Request) -> Response:
        wanted = negotiate_format(request.headers.get("accept"))
        encoding = negotiate_encoding(request.headers.get("accept-encoding"))
        gzipped = encoding is Encoding.GZIP
        body = published.scrape((wanted is Format.OPENMETRICS, gzipped))
        if body is None:
            return text_response(503, "The first sampling window has not closed yet.", {"Retry-After": "1"})
        headers = {"Vary": "Accept, Accept-Encoding"} | ({"Content-Encoding": encoding.value} if gzipped else {})
        return Response(200, wanted.value, body, headers)

    def healthy(_: Request) -> Response:
        return text_response(200, "Healthy: the exporter runs. Whether its sources do is in honest_gpu_up.")

    def ready(_: Request) -> Response:
        if published.current is None:
            return text_response(503, "Not ready: the first sampling window has not closed yet.", {"Retry-After": "1"})
        return text_response(200, "Ready.")

    def snapshot() -> Snapshot | None:
        rendered = published.current
        return None if rendered is None else rendered.snapshot

    table: dict[str, Handler] = {"/-/healthy": healthy, "/-/ready": ready, telemetry_path: metrics}
    return page_handlers(snapshot, published.history, telemetry_path) | table
