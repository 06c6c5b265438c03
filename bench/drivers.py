"""Memory, CPU and requests of the real daemon on the players' libraries: NVML and DCGM, 1 and 8 GPUs and 56 instances.

    python -m bench.drivers [--measure SECONDS] [--settle SECONDS] [--only WORD ...]

Real: the daemon, NVIDIA's own bindings, and the requests, counted as libdcgm makes them of a hostengine. Modelled: the
library behind the bindings is a player of ours, whose arithmetic is in the daemon's CPU and memory (with DCGM also the
hostengine's sampling). `dcgm` pays nothing for a request, so its CPU says little; `dcgm-costed` makes each one a round
trip to a second process, calibrated on DCGM 4.6.0 (tests/abi/dcgm/trip.c), and "hostengine" is the CPU of that process:
what requests cost there, without its own sampling. What a call into a real NVML costs is not known: its row gives the
number of calls. A daemon that cannot keep up shows fewer reads a second than were asked for. Nothing scrapes during the
measurement.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import psutil

from tests.abi.dcgm.build import STANDIN
from tests.abi.dcgm.build import player_library as dcgm_library
from tests.abi.dcgm.playing import play as play_dcgm
from tests.abi.dcgm.scenario import ComputeInstance, Gpu, GpuInstance
from tests.abi.dcgm.scenario import Scenario as DcgmScenario
from tests.abi.nvml.build import player_library as nvml_library
from tests.abi.nvml.playing import play as play_nvml
from tests.abi.nvml.scenario import Scenario as NvmlScenario
from tests.abi.scenarios.nodes import h100_56_instances, h100_node
from tests.abi.scenarios.workloads import GEMM, running
from tests.end_to_end.processes import free_port
from tests.sources.dcgm.nodes import ENGINES, gpu, node

INTERVALS = ("1s", "100ms")


@dataclass(frozen=True)
class Played:
    """A node that a player plays, and how the daemon gets to it."""

    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    asked: Callable[[], int]
    """Requests to the hostengine so far; of NVML, calls."""


@dataclass(frozen=True)
class Case:
    source: str
    node: str
    play: Callable[[Path], Played]


def _nvml(name: str, scenario: NvmlScenario) -> Case:
    def play(folder: Path) -> Played:
        playing = play_nvml(replace(scenario, wall_offset=None), nvml_library(), folder, real_time=True)
        return Played(("--source=nvml",), playing.environment(), lambda: playing.report().total_calls)

    return Case("nvml", name, play)


def _dcgm(name: str, scenario: DcgmScenario, costed: bool) -> Case:
    def play(folder: Path) -> Played:
        real = replace(scenario, wall_offset=None)
        playing = play_dcgm(real, dcgm_library(), folder, real_time=True, costed=costed)
        arguments = ("--source=dcgm", "--dcgm.address=localhost:5555")
        return Played(arguments, playing.environment(), lambda: playing.report().requests)

    return Case("dcgm-costed" if costed else "dcgm", name, play)


def _in_seven(number: int) -> Gpu:
    """A board of seven 1g.10gb."""
    instances = tuple(
        GpuInstance(
            10 * number + nvml_id,
            nvml_id,
            {**ENGINES, 50: "1g.10gb", 54: f"MIG-{number}-{nvml_id}", 250: 9728.0, 251: 9600.0, 252: 128.0},
            (ComputeInstance(10 * number + nvml_id, 0),),
        )
        for nvml_id in range(1, 8)
    )
    return gpu(number, instances=instances)


def _cases() -> Iterator[Case]:
    for count in (1, 8):
        made = h100_node(count)
        name = "1 GPU" if count == 1 else f"{count} GPUs"
        yield _nvml(name, replace(made, gpus=tuple(running(each, GEMM) for each in made.gpus)))
    yield _nvml("56 instances", h100_56_instances())
    for costed in (False, True):
        yield _dcgm("1 GPU", node(gpu()), costed)
        yield _dcgm("8 GPUs", node(*(gpu(number) for number in range(8))), costed)
        yield _dcgm("56 instances", node(*(_in_seven(number) for number in range(8))), costed)


# ---- measuring ----


def _cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def _hostengine(daemon: psutil.Process) -> psutil.Process | None:
    found = [child for child in daemon.children(recursive=True) if child.name().startswith(STANDIN[:15])]
    return found[0] if found else None


def _reads(url: str, source: str) -> float:
    with urllib.request.urlopen(f"{url}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    found = re.search(rf'^honest_gpu_source_reads_total{{source="{source}"}} (\S+)$', text, re.MULTILINE)
    return float(found[1]) if found else 0.0


def _run(case: Case, interval: str, settle: float, measure: float) -> None:
    with tempfile.TemporaryDirectory() as folder:
        played = case.play(Path(folder))
        address = f"127.0.0.1:{free_port()}"
        command = [sys.executable, "-m", "exporter", *played.arguments, f"--sampling.interval={interval}"]
        command += [f"--web.listen-address={address}"]
        process = subprocess.Popen(command, env=dict(played.environment), stderr=subprocess.DEVNULL)
        try:
            time.sleep(settle)
            daemon = psutil.Process(process.pid)
            hostengine = _hostengine(daemon)
            source = case.source.removesuffix("-costed")
            reads, asked = _reads(f"http://{address}", source), played.asked()
            own, theirs, begun = _cpu(daemon), _cpu(hostengine) if hostengine else 0.0, time.monotonic()
            time.sleep(measure)
            elapsed = time.monotonic() - begun
            own, asked = (_cpu(daemon) - own) / elapsed, played.asked() - asked
            theirs = (_cpu(hostengine) - theirs) / elapsed if hostengine else 0.0
            memory = daemon.memory_info().rss / 2**20
            reads = _reads(f"http://{address}", source) - reads
            each = f"{asked / reads:.1f}" if reads else "no reads"
            cost = f"{60 * theirs:.2f}" if hostengine else "-"
            print(
                f"| {case.source} | {case.node} | {interval} | {memory:.1f} | {own:.2%} | {60 * own:.2f} "
                f"| {cost} | {reads / elapsed:.1f} | {each} |",
                flush=True,
            )
        finally:
            process.terminate()
            process.wait(10)


def main() -> None:
    parser = argparse.ArgumentParser(description="The daemon's memory, CPU and requests on the players' libraries.")
    parser.add_argument("--measure", type=float, default=30.0, help="seconds a row; context is read every 10 s")
    parser.add_argument("--settle", type=float, default=8.0, help="seconds after the start that are not measured")
    parser.add_argument("--only", nargs="*", default=[], help="rows that have one of these in source, node or interval")
    options = parser.parse_args()
    print("| source | node | interval | RSS MiB | CPU | CPU s/min | hostengine s/min | reads/s | requests/read |")
    print("|---|---|---|---|---|---|---|---|---|")
    for interval in INTERVALS:
        for case in _cases():
            words = (case.source, case.node, interval)
            if not options.only or any(word in words for word in options.only):
                _run(case, interval, options.settle, options.measure)


if __name__ == "__main__":
    main()
