"""Processes on a GPU, from NVML's list and /proc to the metrics."""

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
from tests.end_to_end.processes import Daemon, daemon, wait_for

pytestmark = pytest.mark.system


def named(running: Daemon, name: str, label: str) -> dict[str, float]:
    return {series: value for series, value in running.metrics().items() if series.startswith(name) and label in series}


def host_view() -> bool:
    try:
        return Path("/proc/2/comm").read_text() == "kthreadd\n"
    except OSError:
        return False


def test_single_processes_of_a_gpu(tmp_path: Path) -> None:
    """A real process that NVML names: its series have its own name, and the workload is the user's or container's."""
    worker = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    try:
        scenario = h100_node(1)
        process = Process(worker.pid, "?", memory=4e9, sm_utilization=25.0)
        scenario = replace(scenario, gpus=(replace(scenario.gpus[0], processes=(process,)),), wall_offset=None)
        environment = play(scenario, player_library(), tmp_path / "nvml", real_time=True).environment()
        flags = ("--collector.processes", "--processes.families")
        with daemon(tmp_path, *flags, environment=environment) as running:
            running.ready()
            memory = "honest_gpu_process_memory_bytes"
            wait_for(lambda: named(running, memory, f'pid="{worker.pid}"'), "the process")
            assert running.value(memory, pid=str(worker.pid)) == 4e9
            assert running.value("honest_gpu_processes_left_off", gpu="0") == 0
            wait_for(
                lambda: running.value("honest_gpu_process_sm_ratio", pid=str(worker.pid)) == pytest.approx(0.25),
                "its use",
            )
            if not host_view():  # said, with the switch that mends it, and nobody is blamed
                wait_for(lambda: running.value("honest_gpu_attribution_up", source="processes") == 0, "the loss")
                assert "--pid=host" in running.log
                assert running.value("honest_gpu_allocation_info", gpu="0") is None
                return
            command = (Path("/proc") / str(worker.pid) / "comm").read_text().strip()
            wait_for(lambda: running.value(memory, pid=str(worker.pid), command=command) == 4e9, "its name")
            assert running.value("honest_gpu_allocation_info", gpu="0", sharing="exclusive") == 1
            assert named(running, "honest_gpu_workload_memory_bytes", "")
            worker.kill()
            worker.wait()
            wait_for(
                lambda: running.value("honest_gpu_attribution_unresolved", kind="process_not_visible") == 1, "its end"
            )
            assert running.value("honest_gpu_allocated", gpu="0") == 0
    finally:
        worker.kill()
        worker.wait()
