"""Every simulated workload lands in the state that an expert would name, and stays there."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

import pytest

from exporter.assembly import Assembly
from exporter.clock import VirtualClock
from exporter.core.pipeline import Pipeline
from exporter.core.sampler import Sampler
from exporter.core.snapshot import EntityView, Snapshot
from exporter.core.workers import InlineWorker
from exporter.fields import FIELDS, Kind
from exporter.hardware.peaks import load
from exporter.hardware.stage import HardwareStage
from exporter.model import Absence, Batch, Reading, Source
from exporter.sources.simulated.source import simulated_source
from exporter.sources.simulated.workloads import WORKLOADS
from exporter.state.rules import State
from exporter.state.stage import StateStage
from exporter.state.thresholds import Thresholds

EXPECTED = {  # workload -> state, why
    "training-healthy": State.TENSOR_BOUND,  # tensor cores at two thirds of what is attainable
    "input-starved": State.INPUT_STARVED,  # busy a fifth of the time, the main thread pegged
    "tiny-kernels": State.LAUNCH_BOUND,  # the engine busy, one SM of 132
    "communication-bound": State.COMMUNICATION_BOUND,  # NVLink full, tensor and memory idle
    "memory-bound": State.DRAM_BOUND,
    "launch-bound": State.LAUNCH_BOUND,  # defensible: input_starved, its main thread is pegged too
    "hang": State.SUSPECTED_HANG,
    "idle-allocated": State.PROCESS_IDLE,
    "power-throttled": State.TENSOR_BOUND,  # and throttled
    "idle": State.UNALLOCATED,
}
# 9 runs tiny kernels, but PCIe is not measured per instance: transfer_bound cannot be ruled out
INSTANCES = {2: State.TENSOR_BOUND, 3: State.DRAM_BOUND, 9: State.UNKNOWN, 10: State.PROCESS_IDLE}


class Noisy:
    """A source whose ratios are off by up to a tenth, and of whose readings one in twenty is lost."""

    def __init__(self, inner: Source, seed: int) -> None:
        self._inner, self._random = inner, random.Random(seed)
        self.name = inner.name

    def read(self, now: float) -> Batch:
        batch = self._inner.read(now)
        return replace(batch, readings=[self._noise(reading) for reading in batch.readings])

    def close(self) -> None:
        self._inner.close()

    def _noise(self, reading: Reading) -> Reading:
        if reading.start is None or reading.value is None:
            return reading
        if self._random.random() < 0.05:
            return reading._replace(value=None, absence=Absence.NO_DATA)
        most = 1.0 if FIELDS[reading.field].kind is Kind.RATIO else float("inf")
        return reading._replace(value=min(most, reading.value * self._random.uniform(0.9, 1.1)))


def played(source: Source, seconds: int = 300) -> Snapshot:
    clock, seen = VirtualClock(), list[Snapshot]()
    assembly = Assembly(seen.append, HardwareStage(load()), StateStage(Thresholds()))
    sampler = Sampler([InlineWorker(source)], Pipeline(clock, 1.0), clock, assembly, interval=1.0)
    for _ in range(seconds):
        sampler.tick()
        clock.advance(1.0)
        del seen[:-1]
    return seen[-1]


def states(snapshot: Snapshot) -> Iterator[tuple[str, State, EntityView]]:
    names = list(WORKLOADS)
    for view in snapshot.entities:
        name, instance = names[int(view.device.index)], view.device.entity.gpu_instance
        if name in EXPECTED:
            yield name, EXPECTED[name], view
        elif instance is not None:
            yield f"{name}/{instance}", INSTANCES[instance], view


@pytest.fixture(scope="module")
def clean() -> Snapshot:
    return played(simulated_source((), 12, loop=True))


def test_every_workload_has_the_state_that_an_expert_would_name(clean: Snapshot) -> None:
    named = {name: (view.state.verdict.state, expected) for name, expected, view in states(clean) if view.state}
    assert len(named) == len(EXPECTED) + len(INSTANCES)
    assert {name: found for name, (found, _) in named.items()} == {name: wanted for name, (_, wanted) in named.items()}


def test_states_do_not_flap(clean: Snapshot) -> None:
    for name, expected, view in states(clean):
        assert view.state is not None
        assert set(view.state.seconds) == {State.UNKNOWN, expected}, name
        assert expected is State.UNKNOWN or view.state.seconds[State.UNKNOWN] < 31


def test_throttling_is_a_flag_of_its_own(clean: Snapshot) -> None:
    flags = {name: view.state.throttled for name, _, view in states(clean) if view.state}
    assert flags["power-throttled"] == {"power_cap": True}
    assert flags["memory-bound"] == {}


def test_a_cut_board_has_no_state_of_its_own(clean: Snapshot) -> None:
    (board,) = [view for view in clean.entities if view.device.mig_enabled]
    assert board.state is None


@pytest.mark.parametrize("seed", [1, 2])
def test_under_noise_the_same_states_and_no_flapping(seed: int) -> None:
    snapshot = played(Noisy(simulated_source((), 12, loop=True), seed))
    for name, expected, view in states(snapshot):
        assert view.state is not None
        assert view.state.verdict.state is expected, name
        assert set(view.state.seconds) == {State.UNKNOWN, expected}, name
