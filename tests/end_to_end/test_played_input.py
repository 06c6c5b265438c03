"""Traces and workloads played once, as fast as possible; recording and replay."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.data import capture
from tests.end_to_end.processes import daemon, wait_for

pytestmark = pytest.mark.system

ONCE = ("--source.once", "--source.speed=max")


def test_a_trace_played_once_prints_a_summary_and_serves(tmp_path: Path) -> None:
    path = capture("traces/saxpy_a100_nsys2022.sqlite")
    with daemon(tmp_path, "--source=replay", f"--source.path={path}", *ONCE) as running:
        running.ready()
        wait_for(lambda: "hollow" in running.out, "the summary")
        assert "unexplained" in running.out
        busy = running.value("honest_gpu_busy_seconds_total")
        sm = running.value("honest_gpu_sm_active_seconds_total")
        assert busy
        assert sm == pytest.approx(busy * 0.0185, rel=0.02)


def test_the_gap_of_tiny_kernels(tmp_path: Path) -> None:
    arguments = ("--source=simulated", "--source.workload=tiny-kernels", "--source.gpus=1", *ONCE)
    with daemon(tmp_path, *arguments) as running:
        running.ready()
        wait_for(lambda: "limiter" in running.out, "the summary")
        observed = running.value("honest_gpu_observed_seconds_total", of="parts")
        hollow = running.value("honest_gpu_time_seconds_total", part="hollow")
        assert observed
        assert hollow
        assert hollow / observed == pytest.approx(0.9, abs=0.02)


def test_a_recording_gives_the_counters_of_what_was_recorded(tmp_path: Path) -> None:
    out = tmp_path / "node.jsonl.gz"
    command = [sys.executable, "-m", "exporter", "record", "--out", str(out), "--source=simulated", "--source.gpus=2"]
    done = subprocess.run([*command, *ONCE, "--duration=60s"], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    with (
        daemon(tmp_path, "--source=replay", f"--source.path={out}", *ONCE) as replayed,
        daemon(tmp_path, "--source=simulated", "--source.gpus=2", *ONCE) as original,
    ):
        wait_for(lambda: "observed" in replayed.out and "observed" in original.out, "both summaries")
        again, first = replayed.metrics(), original.metrics()
        series = [key for key in again if "_seconds_total{" in key and "busy" in key]
        assert series
        for key in series:  # a tenth of the pass: each workload repeats itself, give or take
            assert again[key] <= first[key]
            assert again[key] > 0
