"""A long run over the driver's player: memory, and what the library says is still open.

100,000 windows of a node of one H100 with GPM at work, on the scenario's clock, with a GPU that is lost and comes back
now and then. Linux, gcc.
"""

from __future__ import annotations

import os
import struct
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from tests.abi.nvml.build import player_library
from tests.abi.nvml.codes import Code
from tests.abi.nvml.happenings import failing
from tests.abi.nvml.playing import play
from tests.abi.scenarios.nodes import h100_node
from tests.abi.scenarios.workloads import GEMM, running

WINDOWS = 100_000
EVERY = 10_000


def _child() -> None:
    import psutil

    from exporter.clock import VirtualClock
    from exporter.core.pipeline import Pipeline
    from exporter.core.sampler import Sampler
    from exporter.core.workers import InlineWorker
    from exporter.sources.nvml.source import NvmlSource

    clock = VirtualClock()
    source = NvmlSource(wall=lambda: 1_767_225_600.0 + clock.monotonic())
    sampler = Sampler([InlineWorker(source)], Pipeline(clock, 1.0), clock, lambda _: None, interval=1.0)
    process, path = psutil.Process(), os.environ["HONEST_TEST_NVML_CLOCK"]
    with open(path, "r+b", buffering=0) as file:
        for window in range(WINDOWS + 1):
            file.seek(0)
            file.write(struct.pack("d", clock.monotonic()))
            sampler.tick()
            clock.advance(1.0)
            if window % EVERY == 0:
                rss = process.memory_info().rss / 2**20
                print(f"| {window} | {rss:.1f} | {process.num_threads()} |", flush=True)


def _parent() -> None:
    faults = tuple(
        failing("*", Code.GPU_IS_LOST, gpu="gpu0", start=float(at), end=float(at + 40))
        for at in range(3000, WINDOWS, 9000)
    )
    node = h100_node(1)
    scenario = replace(node, gpus=tuple(running(gpu, GEMM) for gpu in node.gpus), faults=faults)
    with tempfile.TemporaryDirectory() as folder:
        playing = play(scenario, player_library(), Path(folder))
        print("| window | RSS MiB | threads |\n|---|---|---|", flush=True)
        os.spawnve(os.P_WAIT, sys.executable, [sys.executable, "-m", "bench.soak", "child"], playing.environment())
        report = playing.report()
        print(f"\nopen samples {report.open_samples}, event sets {report.open_event_sets}, calls {report.total_calls}")


if __name__ == "__main__":
    _child() if "child" in sys.argv else _parent()
