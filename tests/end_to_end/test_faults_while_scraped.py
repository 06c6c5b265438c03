"""Each fault of a driver or hostengine while a real Prometheus scrapes: always healthy, no counter ever falls.

All at once, each on a GPU of its own beside a sound one; then what hits all of them. What was seen is asked of
Prometheus afterwards.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from tests.abi.dcgm import codes, happenings
from tests.abi.dcgm.bindings import need_bindings
from tests.abi.dcgm.build import player_library as dcgm_library
from tests.abi.dcgm.playing import play as play_dcgm
from tests.abi.dcgm.values import Window
from tests.abi.nvml.build import player_library as nvml_library
from tests.abi.nvml.codes import Code
from tests.abi.nvml.happenings import failing, hanging
from tests.abi.nvml.playing import play as play_nvml
from tests.abi.nvml.scenario import Gpu, steps
from tests.abi.scenarios.nodes import h100_node
from tests.abi.scenarios.workloads import GEMM, running
from tests.end_to_end.processes import Daemon, Prometheus, daemon, fetch, prometheus, wait_for
from tests.sources.dcgm import nodes

pytestmark = pytest.mark.system

OVER = "[5m]"  # longer than a test takes
STUCK = 2  # the GPU whose measurement is stuck at zero
BEGIN, END = 8.0, 20.0  # of the faults of single GPUs, in scenario time


@dataclass
class Scraped:
    """A daemon under a Prometheus, and how it looked from outside in between."""

    daemon: Daemon
    server: Prometheus
    unhealthy: list[str] = field(default_factory=list)

    def ever(self, series: str) -> bool:
        """Whether it was 1 in some scrape."""
        return any(value == 1 for _, value in self.server.query(f"max_over_time({series}{OVER})"))

    def measured(self, gpu: int) -> float:
        """Seconds of measurement so far."""
        return self.daemon.value("honest_gpu_sm_active_seconds_total", gpu=str(gpu)) or 0.0

    def fallen(self) -> list[str]:
        """Counters that fell between two scrapes."""
        counters = f'count by (__name__) (last_over_time({{__name__=~"honest_gpu_.*_(total|bucket)"}}{OVER}))'
        names = [labels["__name__"] for labels, _ in self.server.query(counters)]
        assert len(names) > 10
        return [name for name in names if self.server.query(f"resets({name}{OVER}) > 0")]

    def judge(self, gpus: Sequence[int]) -> None:
        """At the end: all are back, always healthy, every scrape answered, no counter fell, nothing made up."""
        before = {gpu: self.measured(gpu) for gpu in gpus}
        wait_for(lambda: all(self.measured(gpu) > before[gpu] + 3.0 for gpu in gpus), "every GPU is measured again", 90)
        assert self.unhealthy == []
        assert self.server.one(f"min_over_time(up{OVER})") == 1
        assert self.fallen() == []
        divergence = f'max_over_time(honest_gpu_divergence_ratio{{gpu!="{STUCK}"}}{OVER})'  # stuck: five samples are
        assert self.server.query(f"{divergence} > 0.1") == []
        assert self.daemon.stop() < 2.0
        assert self.daemon.process.returncode == 0


@contextmanager
def scraped(folder: Path, *arguments: str, environment: dict[str, str]) -> Iterator[Scraped]:
    with daemon(folder, *arguments, environment=environment) as running_:
        running_.ready()
        with prometheus(folder, running_.url) as server:
            made, ended = Scraped(running_, server), threading.Event()

            def watch() -> None:
                while not ended.wait(0.2):
                    try:
                        answer = fetch(f"{running_.url}/-/healthy", timeout=2.0)
                    except OSError as error:
                        answer = str(error)
                    if not ended.is_set() and not answer.startswith("Healthy"):
                        made.unhealthy.append(answer)

            watcher = threading.Thread(target=watch, daemon=True)
            watcher.start()
            try:
                yield made
            finally:
                ended.set()
                watcher.join(5.0)


def profiling(gpu: int, state: str) -> str:
    return f'honest_gpu_profiling_state{{gpu="{gpu}",state="{state}"}}'


def test_a_hostengine(tmp_path: Path) -> None:
    need_bindings()
    lock = codes.Code.PROFILING_LIBRARY_ERROR
    faults = (
        happenings.blanking(happenings.PROFILING, BEGIN, END, gpu=1),
        happenings.sticking(happenings.PROFILING, 0.0, BEGIN, END, gpu=STUCK),
        happenings.failing_rows(happenings.PROFILING, lock, BEGIN, END, gpu=3),
        happenings.losing(4, BEGIN, END),
        happenings.silencing(happenings.PROFILING, BEGIN, END, gpu=5),
    )
    calls = (
        happenings.failing("dcgmGetDeviceAttributes", codes.Code.GENERIC_ERROR, BEGIN, 24.0, gpu=6),
        happenings.hanging("dcgmGetLatestValues_v2", 56.0, 64.0),
    )
    scenario = nodes.node(
        *(nodes.gpu(number) for number in range(7)),
        nodes.a100(7),  # whose profiling module others lock, and pause
        value_faults=faults,
        call_faults=calls,
        locks=(happenings.Lock(Window(end=BEGIN)),),
        paused=(Window(24.0, 36.0),),
        gone=(Window(40.0, 46.0),),
        wall_offset=None,
    )
    playing = play_dcgm(scenario, dcgm_library(), tmp_path / "dcgm", real_time=True)
    with scraped(tmp_path, "--dcgm.address=localhost:5555", environment=playing.environment()) as seen:
        down = 'honest_gpu_up{source="dcgm"}'
        wait_for(lambda: seen.server.query(f"{down} == 0"), "the hostengine is gone", 60)
        wait_for(lambda: seen.server.query(f"{down} == 1"), "it is back", 60)
        wait_for(lambda: seen.server.query(f"{down} == 0"), "it hangs", 60)
        wait_for(lambda: seen.server.query(f"{down} == 1"), "it answers", 60)
        assert seen.ever(profiling(1, "paused"))  # blank for long
        assert seen.ever(profiling(STUCK, "stuck_at_zero"))
        assert seen.ever(profiling(3, "locked_by_other"))
        assert seen.server.one(f"min_over_time(honest_gpu_present_gpus{OVER})") <= 6  # one is lost, one fails
        assert seen.ever(profiling(5, "stale"))
        assert seen.ever(profiling(7, "locked_by_other"))
        assert seen.ever(profiling(7, "paused"))
        assert not seen.ever(profiling(0, "stuck_at_zero"))
        assert seen.server.one(f"max_over_time(honest_gpu_expected_gpus{OVER})") == 8
        seen.judge(range(8))


def test_a_driver(tmp_path: Path) -> None:
    sound, nan, stuck, *others = (running(gpu, GEMM) for gpu in h100_node(7).gpus)
    faults = (
        failing("nvmlGpmMetricsGet", Code.UNKNOWN, gpu="gpu3", start=BEGIN, end=END),
        failing("*", Code.GPU_IS_LOST, gpu="gpu4", start=BEGIN, end=END),
        hanging("nvmlDeviceGetFieldValues", gpu="gpu5", start=BEGIN, end=END),
        failing("nvmlGpmSampleGet", Code.NO_PERMISSION, gpu="gpu6", start=BEGIN, end=END),
        failing("nvmlDeviceGetCount*", Code.UNKNOWN, start=30.0, end=36.0),
    )
    gpus = (sound, meanwhile(nan, math.nan), meanwhile(stuck, 0.0), *others)
    scenario = replace(h100_node(7), gpus=gpus, faults=faults, wall_offset=None)
    playing = play_nvml(scenario, nvml_library(), tmp_path / "nvml", real_time=True)
    with scraped(tmp_path, environment=playing.environment()) as seen:
        down = 'honest_gpu_up{source="nvml"}'
        wait_for(lambda: seen.server.query(f"{down} == 0"), "the driver fails", 60)
        wait_for(lambda: seen.server.query(f"{down} == 1"), "it answers", 60)
        assert seen.ever(profiling(1, "paused"))  # no number: blank for long
        assert seen.ever(profiling(STUCK, "stuck_at_zero"))
        assert seen.ever(profiling(3, "stale"))
        assert seen.ever(profiling(6, "not_permitted"))
        assert seen.server.one(f"min_over_time(honest_gpu_present_gpus{OVER})") <= 5  # one is lost, one hangs
        assert seen.server.one(f"max_over_time(honest_gpu_expected_gpus{OVER})") == 7
        seen.judge(range(7))


def meanwhile(gpu: Gpu, value: float) -> Gpu:
    """The same with ``value`` in place of every GPM metric, for the time of the faults."""
    assert gpu.gpm is not None
    wrong = {
        metric: steps((0.0, sound), (BEGIN, value), (END, sound))
        for metric, sound in gpu.gpm.items()
        if isinstance(sound, float)
    }
    return replace(gpu, gpm={**gpu.gpm, **wrong})
