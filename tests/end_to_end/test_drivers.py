"""The daemon on drivers: NVIDIA's own bindings over the players' libraries, in real time."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.abi.dcgm import samples
from tests.abi.dcgm.bindings import need_bindings
from tests.abi.dcgm.build import player_library as dcgm_library
from tests.abi.dcgm.playing import play as play_dcgm
from tests.abi.nvml.build import player_library as nvml_library
from tests.abi.nvml.codes import Code
from tests.abi.nvml.happenings import failing
from tests.abi.nvml.playing import play as play_nvml
from tests.abi.nvml.scenario import Scenario
from tests.abi.scenarios.nodes import h100_node, mixed_node
from tests.abi.scenarios.workloads import GEMM, running
from tests.end_to_end.processes import daemon, fetch, prometheus, wait_for

pytestmark = pytest.mark.system


def nvml(scenario: Scenario, folder: Path) -> dict[str, str]:
    return play_nvml(replace(scenario, wall_offset=None), nvml_library(), folder / "nvml", real_time=True).environment()


def busy_node(count: int) -> Scenario:
    node = h100_node(count)
    return replace(node, gpus=tuple(running(gpu, GEMM) for gpu in node.gpus))


def test_no_options_on_a_hopper_node_give_the_full_honest_set(tmp_path: Path) -> None:
    with daemon(tmp_path, environment=nvml(busy_node(2), tmp_path)) as running_:
        running_.ready()
        wait_for(lambda: running_.value("honest_gpu_utilization_ratio", gpu="1") is not None, "the headline")
        assert running_.value("honest_gpu_present_gpus") == 2
        assert running_.value("honest_gpu_busy_ratio", gpu="0") == pytest.approx(1.0)
        assert running_.value("honest_gpu_sm_active_ratio", gpu="0") == pytest.approx(0.98)
        assert running_.value("honest_gpu_utilization_ratio", gpu="0") == pytest.approx(0.82)
        assert running_.value("honest_gpu_divergence_ratio", gpu="0") == pytest.approx(0.02, abs=1e-6)
        assert running_.value("honest_gpu_profiling_state", gpu="0", state="ok") == 1
        assert running_.value("honest_gpu_tensor_peak_ratio", gpu="0") == pytest.approx(0.82 * 1980 / 1830)
        assert running_.stop() < 2.0
        assert running_.process.returncode == 0


def test_a_gpu_is_lost_while_prometheus_scrapes(tmp_path: Path) -> None:
    scenario = replace(busy_node(2), faults=(failing("*", Code.GPU_IS_LOST, gpu="gpu1", start=6.0, end=12.0),))
    with (
        daemon(tmp_path, environment=nvml(scenario, tmp_path)) as running_,
        prometheus(tmp_path, running_.url) as server,
    ):
        running_.ready()
        present = "honest_gpu_present_gpus"
        wait_for(lambda: running_.value(present) == 1, "the loss", 20)
        assert running_.value("honest_gpu_expected_gpus") == 2
        assert fetch(f"{running_.url}/-/healthy").startswith("Healthy")
        lost = running_.value("honest_gpu_busy_seconds_total", gpu="1")
        assert lost
        wait_for(lambda: running_.value(present) == 2, "its return", 40)
        wait_for(lambda: (running_.value("honest_gpu_busy_seconds_total", gpu="1") or 0) > lost, "its counter goes on")
        assert server.one("sum(resets(honest_gpu_busy_seconds_total[1m]))") == 0
        assert server.one("sum(resets(honest_gpu_time_seconds_total[1m]))") == 0
        assert server.one("min_over_time(up[1m])") == 1


def test_an_a100_with_a_hostengine_gives_the_honest_set(tmp_path: Path) -> None:
    need_bindings()
    scenario = replace(samples.one(samples.a100()))
    playing = play_dcgm(scenario, dcgm_library(), tmp_path / "dcgm", real_time=True)
    with daemon(tmp_path, "--dcgm.address=localhost:5555", environment=playing.environment()) as running_:
        running_.ready()
        wait_for(lambda: running_.value("honest_gpu_sm_active_ratio") is not None, "SM active", 40)
        wait_for(lambda: running_.value("honest_gpu_utilization_ratio") is not None, "the headline")
        assert running_.value("honest_gpu_up", source="dcgm") == 1
        assert running_.value("honest_gpu_profiling_state", state="ok") == 1


def test_a_mixed_node_without_dcgm_says_which_gpus_are_not_measured(tmp_path: Path) -> None:
    with daemon(tmp_path, environment=nvml(mixed_node(), tmp_path)) as running_:
        running_.ready()
        wait_for(lambda: running_.value("honest_gpu_sm_active_ratio", gpu="0") is not None, "the Hopper's measurement")
        assert running_.value("honest_gpu_busy_ratio", gpu="2") is not None
        assert running_.value("honest_gpu_sm_active_ratio", gpu="2") is None
        assert running_.value("honest_gpu_profiling_state", gpu="2", state="unsupported") == 1
        assert running_.value("honest_gpu_busy_ratio", gpu="1") is None  # cut into instances
        assert running_.value("honest_gpu_sm_active_ratio", gpu="1", gpu_instance="2") is not None
        assert "is not measured, only the driver's claim is known" in running_.log


def doctor(folder: Path, *arguments: str, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "exporter", "doctor", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=environment, cwd=folder)


def test_the_doctor_finds_a_hopper_node_healthy(tmp_path: Path) -> None:
    done = doctor(tmp_path, "--json", environment=nvml(busy_node(2), tmp_path))
    assert done.returncode == 0, done.stdout
    found = json.loads(done.stdout)
    assert found["honest"] is True
    assert [gpu["measured_by"] for gpu in found["gpus"]] == ["nvml", "nvml"]


def test_the_doctor_says_what_to_do(tmp_path: Path) -> None:
    done = doctor(tmp_path, environment=nvml(mixed_node(), tmp_path))
    assert done.returncode == 1
    assert "--dcgm.address" in done.stdout
    assert "RTX 4090" in done.stdout
