"""Each workload shows what its name says; the node is the same every time, and no two boards are alike."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from functools import cache
from itertools import pairwise

import pytest

from exporter.fields import CLOCK_EVENTS, FIELDS, PROFILING
from exporter.model import Batch
from exporter.sources.simulated.node import MODEL, SimulatedGpu, build_node
from exporter.sources.simulated.script import PATTERN
from exporter.sources.simulated.source import simulated_source
from exporter.sources.simulated.truth import amount
from exporter.sources.simulated.workloads import WORKLOADS, named

each_workload = pytest.mark.parametrize("workload", WORKLOADS)
NAMES = (
    "training-healthy",
    "input-starved",
    "tiny-kernels",
    "communication-bound",
    "memory-bound",
    "launch-bound",
    "hang",
    "idle-allocated",
    "power-throttled",
    "mig-mixed",
    "flapping",
)


@cache
def built(name: str) -> list[SimulatedGpu]:
    return build_node([WORKLOADS[name]], 1)


def board(name: str) -> Callable[[str], float]:
    """Means over the pattern of the board with that workload."""
    track = built(name)[0]
    return lambda channel: amount(track, channel, 0.0, PATTERN) / PATTERN


def test_all_that_were_promised_are_there() -> None:
    assert set(NAMES) <= set(WORKLOADS)
    for name, workload in WORKLOADS.items():
        assert workload.name == name
        assert workload.description
        assert "\n" not in workload.description


def test_training_keeps_the_tensor_cores_busy() -> None:
    mean = board("training-healthy")
    assert mean("busy") > 0.9
    assert mean("sm") > 0.8
    assert mean("tensor") > 0.5
    assert mean("nvlink_transmit") > 50e9
    assert mean("power") > 450.0
    assert mean("collective") > 0.2


def test_input_starved_works_200_ms_of_each_second() -> None:
    mean = board("input-starved")
    assert mean("busy") == pytest.approx(0.2, abs=0.01)
    assert mean("pcie_receive") < 0.5 * 63e9  # the link is not the limit
    (track,) = built("input-starved")
    for second in range(int(PATTERN)):
        assert amount(track, "busy", second, second + 1) == pytest.approx(0.2, abs=0.025)


def test_tiny_kernels_claim_90_percent_and_use_less_than_one() -> None:
    mean = board("tiny-kernels")
    assert mean("busy") == pytest.approx(0.9, abs=0.01)
    assert mean("graphics_engine") == pytest.approx(0.9, abs=0.01)
    assert 0.0 < mean("sm") < 0.01
    assert mean("power") < 130.0


def test_communication_bound_moves_bytes_on_few_sms() -> None:
    mean = board("communication-bound")
    assert mean("busy") > 0.95
    assert mean("sm") < 0.3
    assert mean("nvlink_transmit") > 0.5 * 450e9
    assert mean("nvlink_receive") > 0.5 * 450e9
    assert mean("tensor") < 0.15
    assert mean("dram") < 0.15
    assert mean("collective") > 0.8


def test_memory_bound_has_dram_at_its_limit() -> None:
    mean = board("memory-bound")
    assert mean("dram") == pytest.approx(0.85, abs=0.03)
    assert mean("tensor") < 0.12
    assert mean("memory_used") > 0.9 * mean("memory_total")


def test_launch_bound_is_busy_with_empty_sms() -> None:
    mean = board("launch-bound")
    assert mean("busy") > 0.98
    assert mean("graphics_engine") > 0.9
    assert mean("sm") < 0.25
    assert max(mean(pipe) for pipe in ("tensor", "fp64", "fp32", "fp16", "integer", "dram")) < 0.1


def test_a_hang_is_claimed_fully_busy_at_idle_power() -> None:
    mean, idle = board("hang"), board("idle-allocated")
    assert mean("busy") == pytest.approx(1.0)
    assert mean("sm") < 0.05
    assert max(mean(pipe) for pipe in ("tensor", "fp64", "fp32", "fp16", "integer", "dram")) < 0.01
    assert mean("nvlink_transmit") == 0.0
    assert mean("power") < idle("power") + 10.0
    assert mean("processes") == 1.0


def test_idle_allocated_holds_memory_and_does_nothing() -> None:
    mean = board("idle-allocated")
    assert [mean(field) for field in ("busy", "memory_busy", *sorted(PROFILING))] == [0.0] * (2 + len(PROFILING))
    assert mean("memory_used") > 0.3 * mean("memory_total")
    assert (mean("processes"), mean("clock_event:idle")) == (1.0, 0.0)


def test_idle_has_no_process() -> None:
    mean = board("idle")
    assert (mean("busy"), mean("processes"), mean("memory_used"), mean("clock_event:idle")) == (0.0, 0.0, 0.0, 1.0)
    assert mean("sm_clock") < 0.5e9
    assert mean("power") < 80.0


def test_power_throttled_is_held_down_by_the_cap() -> None:
    mean, free = board("power-throttled"), board("training-healthy")
    assert mean("clock_event:power_cap") > 0.99
    assert mean("power") == pytest.approx(mean("power_limit"), abs=2.0)
    assert mean("sm_clock") < 0.75 * free("sm_clock")
    assert mean("tensor") > 0.6
    assert free("clock_event:power_cap") == 0.0


def test_mig_has_no_claim_on_the_board_and_different_work_on_its_instances() -> None:
    whole, *parts = built("mig-mixed")
    assert whole.device.mig_enabled
    assert whole.device.entity.gpu_instance is None
    assert not whole.timeline.channels & {"busy", "memory_busy", *PROFILING}
    assert len({part.device.entity for part in parts}) == len(parts) >= 3
    assert {part.device.entity.uuid for part in parts} == {whole.device.entity.uuid}
    sm = []
    for part in parts:
        assert part.device.mig_profile
        assert part.device.mig_uuid.startswith("MIG-")
        assert not part.device.mig_enabled
        assert part.device.fields >= frozenset(PROFILING)
        assert not part.device.fields & {"busy", "memory_busy", "power", "temperature"}
        sm.append(amount(part, "sm", 0.0, PATTERN) / PATTERN)
    assert len({round(value, 2) for value in sm}) == len(parts)
    held = sum(amount(part, "memory_used", 0.0, 1.0) for part in parts)
    assert amount(whole, "memory_used", 0.0, 1.0) == pytest.approx(held, rel=1e-6)
    assert amount(whole, "processes", 0.0, 1.0) == len(parts)
    assert board("idle")("power") < board("mig-mixed")("power") < 700.0


def test_flapping_has_phases_of_some_seconds() -> None:
    (track,) = built("flapping")
    busy = [amount(track, "busy", second, second + 1) for second in range(int(PATTERN))]
    assert sum(value > 0.99 for value in busy) > 10
    assert sum(value < 0.01 for value in busy) > 10
    assert sum(abs(a - b) > 0.2 for a, b in pairwise(busy)) > 8


@each_workload
def test_channels_do_not_contradict_one_another(workload: str) -> None:
    """At every event: values in the range of their fields, SM active within the claim, SM pipes within SM active."""
    for track in built(workload):
        kernels, channels = track.activity.kernels, track.timeline.channels
        for time in sorted({0.0, *(k.start for k in kernels), *(PATTERN * n / 997 for n in range(997))}):
            at = {channel: track.timeline.at(channel, time) for channel in channels}
            for channel, value in at.items():
                field = FIELDS.get(channel.partition(":")[0])
                assert field is None or field.low <= value <= min(field.high, max(1.0, field.high - 0.005)), channel
            if "sm" in channels:
                assert at["sm"] <= at["busy"] + 1e-12
                assert at["sm"] <= at["graphics_engine"] + 1e-12
                assert max(at[c] for c in ("sm_occupancy", "tensor", "fp32", "fp16", "integer")) <= at["sm"] + 1e-12
            assert at["memory_used"] + at["memory_free"] + at["memory_reserved"] == at["memory_total"]
            if "power" in channels:
                assert at["power"] <= at["power_limit"]


@each_workload
def test_events_lie_within_the_pattern_and_are_few(workload: str) -> None:
    """Few: they are what the start of the daemon and its memory are paid with."""
    for track in built(workload):
        assert track.timeline.duration == PATTERN
        assert len(track.activity.kernels) <= 1000
        spans = [(k.start, k.end) for k in track.activity.kernels] + [(c.start, c.end) for c in track.activity.copies]
        assert all(0.0 <= start < end <= PATTERN for start, end in spans)


@pytest.mark.parametrize("workload", sorted(set(NAMES) - {"idle-allocated", "mig-mixed"}))
def test_no_two_iterations_and_no_two_boards_are_alike(workload: str) -> None:
    first, second = ([k.occupancy for k in track.activity.kernels] for track in build_node([WORKLOADS[workload]], 2))
    assert len(set(first)) == len(first)
    assert not set(first) & set(second)


def test_power_follows_what_runs() -> None:
    (track,) = built("flapping")
    seconds = [(amount(track, "busy", s, s + 1), amount(track, "power", s, s + 1)) for s in range(int(PATTERN))]
    assert min(watts for busy, watts in seconds if busy > 0.99) > 2 * max(watts for busy, watts in seconds if not busy)
    celsius = [track.timeline.at("temperature", second) for second in range(int(PATTERN))]
    assert max(celsius) - min(celsius) >= 5
    assert celsius == [round(value) for value in celsius]


def readings(batch: Batch) -> list[str]:
    return [repr(reading) for reading in batch.readings]


def test_the_same_node_every_time_and_in_every_process() -> None:
    code = (
        "from exporter.sources.simulated.source import simulated_source as s;"
        "x = s((), 12, loop=True); x.read(0.0); print('\\n'.join(repr(r) for r in x.read(7.3).readings))"
    )
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    source = simulated_source((), 12, loop=True)
    source.read(0.0)
    assert other.stdout.splitlines() == readings(source.read(7.3))


def test_it_marks_itself() -> None:
    batch = simulated_source(("hang", "mig-mixed"), 3, loop=True).read(0.0)
    assert batch.source == "simulated"
    assert batch.details == {"simulated": "true", "workload": "hang,mig-mixed"}
    assert {device.model for device in batch.devices} == {MODEL}


def test_workloads_repeat_until_there_are_enough_boards() -> None:
    batch = simulated_source(("hang", "mig-mixed"), 5, loop=True).read(0.0)
    boards = [device for device in batch.devices if device.entity.gpu_instance is None]
    assert [device.mig_enabled for device in boards] == [False, True, False, True, False]
    assert [device.index for device in boards] == ["0", "1", "2", "3", "4"]
    assert len({device.entity for device in batch.devices}) == len(batch.devices)
    assert len({device.pci_bus_id for device in boards}) == len(boards)
    assert boards[4].entity.uuid == "GPU-51313131-0000-0000-0000-000000000004"


def test_without_names_all_are_played_in_order() -> None:
    batch = simulated_source((), 8, loop=True).read(0.0)
    assert batch.details["workload"].split(",") == list(WORKLOADS)[:8]


def test_what_a_whole_board_reports() -> None:
    """As a real one: the claim, the measurement, links, context; every clock event, each with its own label."""
    source = simulated_source(("training-healthy",), 1, loop=True)
    (device,) = source.read(0.0).devices
    assert device.fields >= {
        "busy",
        "memory_busy",
        *PROFILING,
        "pcie_receive",
        "nvlink_transmit",
        "energy",
        "processes",
    }
    labels = {reading.label for reading in source.read(1.0).readings if reading.field == "clock_event"}
    assert labels == set(CLOCK_EVENTS.values())


@pytest.mark.parametrize("loop", [True, False])
def test_it_ends_when_it_is_not_to_loop(loop: bool) -> None:
    source = simulated_source(("hang",), 1, loop=loop, duration=100.0)
    ends = [source.read(now).end for now in (0.0, 99.0, 150.0, 151.0)]
    assert ends == ([0.0, 99.0, 150.0, 151.0] if loop else [0.0, 99.0, 100.0, 100.0])
    assert source.read(152.0).final is not loop


def test_an_unknown_name_is_answered_with_the_nearest_and_all() -> None:
    with pytest.raises(ValueError, match=r"no such workload: 'trainning'.*did you mean training-healthy\?") as raised:
        simulated_source(("trainning",), 8, loop=True)
    assert all(name in str(raised.value) for name in WORKLOADS)
    with pytest.raises(ValueError, match=r"no such workload: 'zzz' \("):
        named("zzz")


def test_more_names_than_boards_are_refused_instead_of_dropped() -> None:
    with pytest.raises(ValueError, match="3 workloads need as many GPUs, there are 2"):
        simulated_source(("hang", "idle", "flapping"), 2, loop=True)
