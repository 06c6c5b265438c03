"""Each fault of a driver or hostengine, in real time: the daemon stays healthy, says it, and no counter falls."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.abi.dcgm.bindings import need_bindings
from tests.abi.dcgm.build import player_library as dcgm_library
from tests.abi.dcgm.playing import play as play_dcgm
from tests.abi.dcgm.scenario import PROFILING, Scenario, Window, blanking, sticking
from tests.abi.nvml.build import player_library as nvml_library
from tests.abi.nvml.happenings import hanging
from tests.abi.nvml.playing import play as play_nvml
from tests.abi.scenarios.nodes import h100_node
from tests.abi.scenarios.workloads import GEMM, running
from tests.end_to_end.processes import Daemon, daemon, fetch, wait_for
from tests.sources.dcgm import nodes

BEGIN, END = 8.0, 18.0
STATE = "honest_gpu_profiling_state"


def faulty(*faults: object) -> Scenario:
    return nodes.node(nodes.gpu(), wall_offset=None, value_faults=faults)


def profiling_is(state: str) -> Callable[[Daemon], bool]:
    return lambda daemon_: daemon_.value(STATE, state=state) == 1


FAULTS: dict[str, tuple[Callable[[], Scenario], Callable[[Daemon], bool]]] = {
    "hostengine gone": (
        lambda: nodes.node(nodes.gpu(), wall_offset=None, gone=(Window(BEGIN, END),)),
        lambda daemon_: daemon_.value("honest_gpu_up", source="dcgm") == 0,
    ),
    "stuck at zero": (lambda: faulty(sticking(PROFILING, 0.0, BEGIN, END)), profiling_is("stuck_at_zero")),
    "blank": (lambda: faulty(blanking(PROFILING, BEGIN, END)), profiling_is("paused")),
    "paused by another client": (
        lambda: nodes.node(nodes.a100(), wall_offset=None, paused=(Window(BEGIN, END),)),
        profiling_is("paused"),
    ),
}


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


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_the_hostengine(tmp_path: Path, fault: str) -> None:
    need_bindings()
    scenario, seen = FAULTS[fault]
    playing = play_dcgm(scenario(), dcgm_library(), tmp_path / "dcgm", real_time=True)
    with daemon(tmp_path, "--dcgm.address=localhost:5555", environment=playing.environment()) as running_:
        running_.ready()
        wait_for(lambda: running_.value("honest_gpu_sm_active_ratio") is not None, "the measurement", 20)
        counters = Monotonic(running_)

        def there() -> bool:
            counters.look()
            return seen(running_)

        wait_for(there, f"{fault} is seen", 30)
        assert running_.value("honest_gpu_divergence_ratio") is None  # nothing is made up meanwhile
        before = running_.value("honest_gpu_sm_active_seconds_total") or 0.0

        def back() -> bool:
            counters.look()
            return (running_.value("honest_gpu_sm_active_seconds_total") or 0.0) > before + 1.0

        wait_for(back, "the measurement goes on", 60)
        assert running_.stop() < 2.0


def test_a_gpu_whose_driver_call_hangs(tmp_path: Path) -> None:
    node = h100_node(2)
    scenario = replace(
        node,
        gpus=tuple(running(gpu, GEMM) for gpu in node.gpus),
        faults=(hanging("nvmlDeviceGetPowerUsage", gpu="gpu1", start=5.0, end=15.0),),
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
