"""A call that hangs costs its GPU alone; profiling is paused and resumed from the command line. In real time."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.abi.dcgm.bindings import need_bindings
from tests.abi.dcgm.build import player_library as dcgm_library
from tests.abi.dcgm.codes import Code
from tests.abi.dcgm.happenings import Lock
from tests.abi.dcgm.playing import play as play_dcgm
from tests.abi.dcgm.values import Window
from tests.abi.nvml.build import player_library as nvml_library
from tests.abi.nvml.happenings import hanging
from tests.abi.nvml.playing import play as play_nvml
from tests.abi.scenarios.nodes import h100_node
from tests.abi.scenarios.workloads import GEMM, running
from tests.end_to_end.processes import Daemon, daemon, fetch, wait_for
from tests.sources.dcgm import nodes

pytestmark = pytest.mark.system


class Monotonic:
    """Looks at all counters again and again; each fall is an error."""

    def __init__(self, running_: Daemon) -> None:
        self._daemon = running_
        self._before: dict[str, float] = {}

    def look(self) -> None:
        assert fetch(f"{self._daemon.url}/-/healthy").startswith("Healthy")
        now = {key: value for key, value in self._daemon.metrics().items() if "_total" in key and "uuid" in key}
        fallen = {key: (self._before[key], value) for key, value in now.items() if value < self._before.get(key, 0.0)}
        assert not fallen
        self._before |= now


def test_a_gpu_whose_driver_call_hangs(tmp_path: Path) -> None:
    node = h100_node(2)
    scenario = replace(
        node,
        gpus=tuple(running(gpu, GEMM) for gpu in node.gpus),
        faults=(hanging("nvmlDeviceGetFieldValues", gpu="gpu1", start=5.0, end=15.0),),
        wall_offset=None,
    )
    playing = play_nvml(scenario, nvml_library(), tmp_path / "nvml", real_time=True)
    with daemon(tmp_path, environment=playing.environment()) as running_:
        running_.ready()
        wait_for(lambda: running_.value("honest_gpu_present_gpus") == 1, "the hang", 30)
        counters = Monotonic(running_)
        counters.look()
        other = running_.value("honest_gpu_busy_seconds_total", gpu="0") or 0.0
        wait_for(lambda: (running_.value("honest_gpu_busy_seconds_total", gpu="0") or 0) > other, "the other GPU")
        wait_for(lambda: running_.value("honest_gpu_present_gpus") == 2, "its return", 40)
        counters.look()
        assert running_.stop() < 2.0


def test_profiling_is_paused_and_resumed_from_the_command_line(tmp_path: Path) -> None:
    need_bindings()
    playing = play_dcgm(nodes.node(nodes.a100(), wall_offset=None), dcgm_library(), tmp_path / "dcgm", real_time=True)

    def profiling(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "exporter", "profiling", *arguments]
        environment = playing.environment()
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=environment)

    for arguments, said in (
        (("pause",), "is paused until"),
        (("resume",), "is resumed"),
        (("pause", "--for=500ms"), "resumed"),
    ):
        done = profiling(*arguments)
        assert done.returncode == 0, done.stderr
        assert said in done.stdout
    assert profiling("pause", "--dcgm.address=nowhere:x").returncode == 2


DOCTOR: dict[str, tuple[dict[str, Any], str, str]] = {
    "locked": (
        {"locks": (Lock(code=Code.IN_USE),)},
        "cannot be measured another client holds the profiling hardware",
        "end the other profiler",
    ),
    "paused": ({"paused": (Window(),)}, "does not report SM active: paused", "profiling resume"),
    "gone": ({"gone": (Window(),)}, "no hostengine at localhost:5555", "systemctl start nvidia-dcgm"),
}


@pytest.mark.parametrize("fault", DOCTOR)
def test_the_doctor_says_what_is_wrong_with_a_hostengine_and_what_to_do(tmp_path: Path, fault: str) -> None:
    need_bindings()
    happening, why, remedy = DOCTOR[fault]
    scenario = nodes.node(nodes.a100(), wall_offset=None, **happening)
    playing = play_dcgm(scenario, dcgm_library(), tmp_path / "dcgm", real_time=True)
    command = [sys.executable, "-m", "exporter", "doctor", "--dcgm.address=localhost:5555"]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=60, check=False, env=playing.environment(), cwd=tmp_path
    )
    assert done.returncode == 1, done.stdout
    assert why in done.stdout
    assert remedy in done.stdout
