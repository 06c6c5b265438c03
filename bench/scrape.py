"""Scrape latency of the web server against a plain prometheus_client server with the same samples.

Each scrape is a new connection on loopback. "ready": the bytes are there, as they are for every scraper after its
first scrape when sampling is not faster than once a second. "rendered": the scrape renders a Snapshot that was just
published, as with faster sampling or a form that nobody asked for before.
"""

from __future__ import annotations

import http.client
import statistics
import time
from collections.abc import Callable, Iterable, Mapping

import prometheus_client
from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector, CollectorRegistry

from bench.nodes import gpus, instances, snapshots
from exporter.core.snapshot import Snapshot
from exporter.endpoints import Published, endpoints
from exporter.exposition import text
from exporter.metrics.catalogue import GROUPS, Selection, samples
from exporter.web.routes import Routes
from exporter.web.server import WebServer

SCRAPES = 200
_OPENMETRICS = "application/openmetrics-text;version=1.0.0"
FORMS: Mapping[str, Mapping[str, str]] = {
    "text": {},
    "text gzip": {"Accept-Encoding": "gzip"},
    "OpenMetrics": {"Accept": _OPENMETRICS},
    "OpenMetrics gzip": {"Accept": _OPENMETRICS, "Accept-Encoding": "gzip"},
}


class _Same(Collector):
    """The same samples, as prometheus_client's own metrics."""

    def __init__(self, body: str) -> None:
        self._metrics = list(text_string_to_metric_families(body))

    def collect(self) -> Iterable[Metric]:
        return self._metrics


def _scrape(port: int, headers: Mapping[str, str]) -> tuple[float, int]:
    started = time.perf_counter()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("GET", "/metrics", headers=dict(headers))
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    assert answer.status == 200
    return time.perf_counter() - started, len(body)


def _measure(port: int, headers: Mapping[str, str], before: Callable[[int], None]) -> tuple[float, float, int]:
    """(p50, p99, bytes) in milliseconds; ``before`` runs ahead of each scrape, outside the measurement."""
    taken, size = [], 0
    for number in range(SCRAPES):
        before(number)
        seconds, size = _scrape(port, headers)
        taken.append(seconds * 1000)
    cuts = statistics.quantiles(taken, n=100)
    return statistics.median(taken), cuts[98], size


def _compare(title: str, taken: list[Snapshot]) -> None:
    selection = Selection()
    body = text(samples(taken[-1], GROUPS, selection)).decode()
    count = sum(1 for line in body.splitlines() if not line.startswith("#"))
    published = Published(lambda snapshot: samples(snapshot, GROUPS, selection))
    published.publish(taken[0])
    ours = WebServer(["127.0.0.1:0"], Routes(endpoints(published, "/metrics")))
    ours.start()
    registry = CollectorRegistry()
    registry.register(_Same(body))
    theirs, thread = prometheus_client.start_http_server(0, "127.0.0.1", registry)
    print(f"\n{title}: {count} samples, {len(body)} bytes of text\n")
    print("| form | bytes | ready p50/p99 ms | rendered p50/p99 ms | prometheus_client p50/p99 ms | p50 ratios |")
    print("|---|---|---|---|---|---|")
    for form, headers in FORMS.items():
        port = ours.addresses[0][1]
        rendered = _measure(port, headers, lambda n: published.publish(taken[n % len(taken)]))
        ready = _measure(port, headers, lambda _: None)
        other = _measure(theirs.server_port, headers, lambda _: None)
        print(
            f"| {form} | {ready[2]} | {ready[0]:.1f} / {ready[1]:.1f} | {rendered[0]:.1f} / {rendered[1]:.1f} "
            f"| {other[0]:.1f} / {other[1]:.1f} | {other[0] / ready[0]:.1f}x / {other[0] / rendered[0]:.1f}x |"
        )
    ours.stop()
    theirs.shutdown()
    thread.join()


if __name__ == "__main__":
    _compare("8 GPUs", snapshots(gpus(8), 20))
    _compare("8 boards with 56 MIG instances", snapshots(instances(8, 7), 20))
