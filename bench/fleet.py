"""A fleet on one Prometheus: series and bytes a GPU, time of the rules, the heaviest dashboard query, memory.

250 nodes of 8 simulated GPUs, all rules, every query of every dashboard. ``python -m bench.fleet [nodes] [minutes]``.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import sys
import tempfile
import time
import urllib.parse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from bench.fleet_nodes import GPUS, Nodes, nodes
from tests.dashboards.grafana import substituted
from tests.dashboards.reading import NAMES, REPOSITORY, panel_queries, variables
from tests.end_to_end.processes import Prometheus, fetch, parse, prometheus

STEPS = 20  # points of a panel in the measurement


@dataclass(frozen=True, slots=True)
class Figures:
    """What one Prometheus has to bear. Durations in seconds; ``queries``: dashboard query -> duration."""

    gpus: int
    series_a_gpu: float
    recorded_a_gpu: float
    bytes_a_scrape: tuple[int, int]
    slowest_scrape: float
    rules: Mapping[str, float]
    failures: float
    rss: int
    cpu: float
    queries: Mapping[str, float] = field(repr=False)

    def lines(self) -> Iterator[str]:
        """As rows of a table."""
        text, sent = self.bytes_a_scrape
        yield f"| GPUs | {self.gpus} |"
        yield f"| series a GPU, from the exporter | {self.series_a_gpu:.0f} |"
        yield f"| series a GPU, recorded by the rules | {self.recorded_a_gpu:.1f} |"
        yield f"| bytes a scrape of {GPUS} GPUs, text / on the wire (gzip) | {text} / {sent} |"
        yield f"| slowest scrape | {self.slowest_scrape * 1000:.0f} ms |"
        yield f"| one evaluation of all rules | {sum(self.rules.values()):.2f} s |"
        for name, seconds in sorted(self.rules.items(), key=lambda each: -each[1])[:3]:
            yield f"| ... of these {name} | {seconds:.2f} s |"
        for name, seconds in sorted(self.queries.items(), key=lambda each: -each[1])[:3]:
            yield f"| dashboard query: {name}, {STEPS} points | {seconds:.2f} s |"
        yield f"| all {len(self.queries)} dashboard queries | {sum(self.queries.values()):.1f} s |"
        yield f"| Prometheus: resident memory | {self.rss / 2**20:.0f} MiB |"
        yield f"| Prometheus: CPU | {self.cpu:.0%} of a core |"


@contextlib.contextmanager
def fleet(folder: Path, count: int, scrape_interval: str, rules: str) -> Iterator[tuple[Nodes, Prometheus]]:
    """``rules``: a pattern of rule files."""
    with nodes(folder, count) as made, prometheus(folder) as server:
        config = {
            "global": {"scrape_interval": scrape_interval, "evaluation_interval": scrape_interval},
            "rule_files": [rules],
            "scrape_configs": [{"job_name": "honest-gpu-exporter", "static_configs": made.targets()}],
        }
        (folder / "prometheus.yml").write_text(json.dumps(config))
        server.process.send_signal(signal.SIGHUP)
        yield made, server


def dashboard_queries(server: Prometheus, step: float) -> dict[str, float]:
    """Every query of every panel with all GPUs chosen, over the last ``STEPS`` steps: seconds each took."""
    taken: dict[str, float] = {}
    end = time.time()
    for name in NAMES:
        choices = {each["name"]: ".*" if each["includeAll"] else "gpu-000:9836" for each in variables(name)}
        for asked in panel_queries(name):
            rate = f"{max(4 * step, 4):g}s"
            text = substituted(asked.text, choices, range_=f"{STEPS * step:g}s", rate_interval=rate)
            window = {"query": text, "start": end - STEPS * step, "end": end, "step": step, "timeout": "120s"}
            started = time.perf_counter()
            fetch(f"{server.url}/api/v1/query_range?{urllib.parse.urlencode(window)}", timeout=120)
            taken[str(asked)] = time.perf_counter() - started
    return taken


def measured(made: Nodes, server: Prometheus, step: float, cpu: float) -> Figures:
    """``step``: seconds between the points of a panel; ``cpu``: share of a core that Prometheus has used."""
    own = parse(fetch(f"{server.url}/metrics"))

    def by_group(name: str) -> dict[str, float]:
        return {
            re.findall(r";([^\"]+)\"", key)[0]: value
            for key, value in own.items()
            if key.startswith(f"prometheus_rule_{name}")
        }

    gpus = made.count * GPUS
    return Figures(
        gpus=gpus,
        series_a_gpu=server.one("sum(scrape_samples_post_metric_relabeling)") / gpus,
        recorded_a_gpu=server.one('count({__name__=~".+:.+"})') / gpus,
        bytes_a_scrape=made.sizes,
        slowest_scrape=server.one("max(scrape_duration_seconds)"),
        rules=by_group("group_last_duration_seconds"),
        failures=sum(by_group("evaluation_failures_total").values()),
        rss=psutil.Process(server.process.pid).memory_info().rss,
        cpu=cpu,
        queries=dashboard_queries(server, step),
    )


def run(count: int, minutes: float) -> Figures:
    """The shipped rules at their own pace, a scrape every 15 s."""
    folder = Path(tempfile.mkdtemp(prefix="fleet-"))
    try:
        with fleet(folder, count, "15s", f"{REPOSITORY}/rules/*.yml") as (made, server):
            process = psutil.Process(server.process.pid)
            started, before = time.monotonic(), sum(process.cpu_times()[:2])
            time.sleep(60 * minutes)
            cpu = (sum(process.cpu_times()[:2]) - before) / (time.monotonic() - started)
            return measured(made, server, 15.0, cpu)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    asked = [float(argument) for argument in sys.argv[1:]]
    figures = run(int(asked[0]) if asked else 250, asked[1] if len(asked) > 1 else 8.0)
    print(f"| {os.cpu_count()} cores | |\n|---|---|")
    print("\n".join(figures.lines()))
