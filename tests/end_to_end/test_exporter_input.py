"""The first step of many clusters: pointed at an exporter that already runs, and scraped by a real Prometheus."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.data import capture
from tests.end_to_end.processes import daemon, prometheus, serving, wait_for

pytestmark = pytest.mark.system

WINDOW = 10


def test_a_loaded_t4_from_its_exporter_to_promql(tmp_path: Path) -> None:
    body = capture("dcgm_exporter/t4_under_load.prom").read_text()
    with (
        serving(body) as url,
        daemon(tmp_path, "--source=dcgm-exporter", f"--source.url={url}") as running,
        prometheus(tmp_path, running.url) as server,
    ):
        running.ready()
        wait_for(lambda: running.value("honest_gpu_utilization_ratio") is not None, "the first window")
        assert running.value("honest_gpu_busy_ratio") == pytest.approx(0.91)
        assert running.value("honest_gpu_graphics_engine_active_ratio") == pytest.approx(0.156, abs=5e-4)
        assert running.value("honest_gpu_utilization_ratio") == pytest.approx(0.0928, abs=1e-4)
        assert running.value("honest_gpu_sm_active_ratio") is None
        assert running.value("honest_gpu_divergence_ratio") is None

        def rate(name: str, denominator: str, extra: str = "") -> str:
            over = f'ignoring(of,part) rate(honest_gpu_observed_seconds_total{{of="{denominator}"}}[{WINDOW}s])'
            return f"rate(honest_gpu_{name}_seconds_total{extra}[{WINDOW}s]) / {over}"

        time.sleep(WINDOW)
        wait_for(lambda: server.query(rate("busy", "claim")), "two scrapes")
        assert server.one(rate("busy", "claim")) == pytest.approx(0.91, abs=1e-6)
        assert server.one(rate("graphics_engine_active", "graphics_engine")) == pytest.approx(0.156, abs=5e-4)
        assert server.one(rate("time", "parts", '{part="working"}')) == pytest.approx(0.0928, abs=1e-4)
        assert server.one("up") == 1
