"""The host's part on a driver whose process is a real one; prices and thresholds from the configuration."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.abi.nvml.build import player_library
from tests.abi.nvml.playing import play
from tests.abi.nvml.scenario import Process
from tests.abi.scenarios.nodes import h100_node
from tests.end_to_end.processes import daemon, wait_for

pytestmark = pytest.mark.system


def test_a_pegged_main_thread_is_seen(tmp_path: Path) -> None:
    spinning = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        node = h100_node(1)
        board = replace(node.gpus[0], utilization=40.0, processes=(Process(spinning.pid, memory=2.0**30),))
        scenario = replace(node, gpus=(board,), wall_offset=None)
        playing = play(scenario, player_library(), tmp_path / "nvml", real_time=True)
        arguments = ("--collector.processes", "--cost.price-per-hour=*H100*=2.5", "--cost.currency=EUR")
        with daemon(tmp_path, *arguments, environment=playing.environment()) as running:
            running.ready()
            name = "honest_gpu_host_main_thread_cpu_seconds_total"
            wait_for(lambda: (running.value(name, gpu="0") or 0) > 2.0, "the main thread's time", 30)
            assert running.value("honest_gpu_price_per_hour", currency="EUR") == 2.5
            assert running.value("honest_gpu_processes", gpu="0") == 1
            if running.value("honest_gpu_attribution_up", source="processes"):  # where /proc is the host's
                assert running.value("honest_gpu_allocated", gpu="0") == 1
    finally:
        spinning.kill()
        spinning.wait()


@pytest.mark.parametrize(
    ("flag", "said"),
    [
        ("--state.threshold=nonsense=0.5", "no such threshold: nonsense; expected one of nothing_runs,"),
        ("--state.threshold=sm_launch=7", "a ratio from 0 to 1"),
        ("--cost.price-per-hour=cheap", "expected a price"),
        ("--cost.currency=euro", "expected a currency code"),
    ],
)
def test_wrong_settings_are_refused(flag: str, said: str) -> None:
    command = [sys.executable, "-m", "exporter", "--source=simulated", flag, "--web.listen-address=127.0.0.1:0"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    assert done.returncode == 2
    assert said in done.stderr
