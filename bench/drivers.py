"""Memory and CPU of the real daemon on the driver's player: 8 GPUs and 56 MIG instances, at 1 and 10 Hz.

NVIDIA's binding and everything above it run as in production; the player's own arithmetic is in the figures too.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import psutil

from tests.abi.nvml.build import player_library
from tests.abi.nvml.playing import play
from tests.abi.nvml.scenario import Scenario
from tests.abi.scenarios.nodes import h100_56_instances, h100_node
from tests.abi.scenarios.workloads import GEMM, running

SETTLE, MEASURE = 6.0, 20.0


def _run(name: str, scenario: Scenario, interval: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        playing = play(replace(scenario, wall_offset=None), player_library(), Path(folder), real_time=True)
        command = [sys.executable, "-m", "exporter", "--source=nvml", f"--sampling.interval={interval}"]
        command += ["--web.listen-address=127.0.0.1:0"]
        process = subprocess.Popen(command, env=playing.environment(), stderr=subprocess.DEVNULL)
        try:
            time.sleep(SETTLE)
            seen = psutil.Process(process.pid)
            before, started = seen.cpu_times(), time.monotonic()
            time.sleep(MEASURE)
            after = seen.cpu_times()
            cpu = (after.user + after.system - before.user - before.system) / (time.monotonic() - started)
            print(f"| {name} | {interval} | {seen.memory_info().rss / 2**20:.1f} | {cpu:.2%} |", flush=True)
        finally:
            process.terminate()
            process.wait(5)


if __name__ == "__main__":
    node = h100_node()
    node = replace(node, gpus=tuple(running(gpu, GEMM) for gpu in node.gpus))
    print("| node | interval | RSS MiB | CPU of a core |\n|---|---|---|---|")
    for interval in ("1s", "100ms"):
        _run("8 GPUs", node, interval)
        _run("56 instances", h100_56_instances(), interval)
