"""On a machine with an NVIDIA GPU: the driver is read for some windows. Skips where there is none."""

from __future__ import annotations

import time

import pytest

from exporter.clock import SystemClock
from exporter.core.pipeline import Pipeline
from exporter.core.sampler import Sampler
from exporter.core.snapshot import Snapshot
from exporter.core.workers import ThreadWorker
from exporter.model import SourceError
from exporter.sources.nvml.probe import Probe, probe
from exporter.sources.nvml.source import NvmlSource


@pytest.fixture(scope="module")
def machine() -> Probe:
    try:
        return probe()
    except SourceError as error:
        pytest.skip(f"no GPU here: {error}")


@pytest.fixture(scope="module")
def snapshot(machine: Probe) -> Snapshot:
    seen: list[Snapshot] = []
    clock = SystemClock()
    sampler = Sampler([ThreadWorker(NvmlSource())], Pipeline(clock, 1.0), clock, seen.append, interval=1.0)
    for _ in range(8):
        sampler.tick(patience=0.9)
        time.sleep(1.0)
    sampler.close(2.0)
    return seen[-1]


def test_every_gpu_is_read(machine: Probe, snapshot: Snapshot) -> None:
    boards = {view.device.entity.uuid for view in snapshot.entities if view.present}
    assert boards == {gpu.uuid for gpu in machine.gpus if not gpu.problem}


def test_gpm_measures_where_it_is_supported(machine: Probe, snapshot: Snapshot) -> None:
    supported = {gpu.uuid for gpu in machine.gpus if gpu.gpm and not gpu.mig}
    for view in snapshot.entities:
        if view.device.entity.uuid in supported:
            assert "sm" in view.means, view.absences
            assert 0.0 <= view.means["sm"] <= 1.0
            assert view.honest is not None
            assert sum(view.honest.parts.values()) == pytest.approx(1.0)


def test_nothing_was_out_of_range(snapshot: Snapshot) -> None:
    for view in snapshot.entities:
        assert not [key for key in view.rejected if key[1] == "out_of_range"]
        assert 0 < view.instants.get("power", 1.0) < 2000
