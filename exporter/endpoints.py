"""What the web server answers: /metrics, the probes and the landing page. Everything comes from memory."""

from __future__ import annotations

import html
import threading
import time
from collections.abc import Callable, Mapping

from exporter.core.snapshot import EntityView, Snapshot
from exporter.exposition import Form, Rendered
from exporter.metrics.family import Family, Sample
from exporter.version import VERSION
from exporter.web.negotiation import Encoding, Format, negotiate_encoding, negotiate_format
from exporter.web.routes import Handler, Request, Response, text_response

AHEAD_FOR = 300.0  # seconds for which a form that was asked for is rendered ahead of the next scrape
AHEAD_EVERY = 0.9  # seconds between renderings ahead: faster sampling does not pay for each of its windows


class Published:
    """Holds the last Snapshot. Swapped as one, so that a scrape sees one Snapshot only.

    Forms that somebody scrapes are rendered when a Snapshot is published, so that the scrape finds bytes; others when
    they are asked for.
    """

    def __init__(
        self,
        collect: Callable[[Snapshot], Mapping[Family, list[Sample]]],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._collect = collect
        self._now = now
        self._rendered: Rendered | None = None
        self._asked: dict[Form, float] = {}  # form -> when it was last scraped
        self._ahead = float("-inf")
        self._first = threading.Event()

    def publish(self, snapshot: Snapshot) -> None:
        """Make ``snapshot`` the current one."""
        rendered, now = Rendered(snapshot, self._collect), self._now()
        if now - self._ahead >= AHEAD_EVERY:
            self._ahead = now
            for form, asked in list(self._asked.items()):
                if now - asked < AHEAD_FOR:
                    rendered.get(form)
        self._rendered = rendered
        self._first.set()

    def scrape(self, form: Form) -> bytes | None:
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

    def landing(_: Request) -> Response:
        rendered = published.current
        page = _page(rendered.snapshot if rendered else None, telemetry_path)
        headers = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'"}
        return Response(200, "text/html; charset=utf-8", page.encode(), headers)

    table: dict[str, Handler] = {"/-/healthy": healthy, "/-/ready": ready, telemetry_path: metrics}
    table.setdefault("/", landing)
    return table


_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:60rem;padding:0 1rem;color-scheme:light dark}"
    "table{border-collapse:collapse;width:100%}th,td{text-align:left;padding:.3rem .6rem;border-bottom:1px solid #8886}"
)


def _page(snapshot: Snapshot | None, telemetry_path: str) -> str:
    if snapshot is None:
        body = "<p>The first sampling window has not closed yet.</p>"
    else:
        rows = "".join(_row(view) for view in snapshot.entities if view.present)
        problems = "".join(
            f"<li>{html.escape(p.what)}: {html.escape(p.why)} {html.escape(p.remedy)}</li>" for p in snapshot.problems
        )
        body = (
            "<table><thead><tr><th>GPU<th>Model<th>Driver claims<th>SM active<th>Working<th>Data</tr></thead>"
            f"<tbody>{rows}</tbody></table>" + (f"<h2>What is missing</h2><ul>{problems}</ul>" if problems else "")
        )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Honest GPU Exporter</title>'
        f"<style>{_STYLE}</style></head><body><h1>Honest GPU Exporter {VERSION}</h1>{body}"
        f'<p><a href="{html.escape(telemetry_path)}">Metrics</a> · <a href="/-/healthy">Healthy</a> · '
        '<a href="/-/ready">Ready</a></p></body></html>\n'
    )


def _row(view: EntityView) -> str:
    instance = view.device.entity.gpu_instance
    name = view.device.index if instance is None else f"{view.device.index} / instance {instance}"
    working = view.honest.utilization if view.honest else None
    cells = (
        name,
        view.device.model or "unknown",
        _percent(view.means.get("busy")),
        _percent(view.means.get("sm")),
        _percent(working),
        f"{view.source}, profiling {view.profiling.value.replace('_', ' ')}",
    )
    return "<tr>" + "".join(f"<td>{html.escape(cell)}" for cell in cells) + "</tr>"


def _percent(ratio: float | None) -> str:
    return "absent" if ratio is None else f"{ratio:.1%}"
