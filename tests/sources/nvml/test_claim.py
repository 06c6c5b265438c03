"""The claim: what the driver's buffers leave open."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from tests.abi.nvml.build import player_library
from tests.abi.nvml.codes import Code
from tests.abi.nvml.happenings import failing
from tests.abi.nvml.meeting import h100, one
from tests.abi.nvml.scenario import steps
from tests.abi.scenarios.nodes import h100_node
from tests.sources.nvml.conftest import Drive
from tests.sources.nvml.driving import drive

UUID = h100().uuid
TIMES = "0.1, 1.1, 2.1, 3.1, 4.1, 5.1"  # between the buffer's windows of a sixth of a second


def test_without_a_buffer_the_window_is_that_of_the_reads(tmp_path: Path) -> None:
    library = player_library(frozenset({"nvmlDeviceGetSamples"}))
    gpu = h100(utilization=60.0, memory_utilization=20.0)
    last = drive(one(gpu), library, tmp_path / "old", f"source = make(); result = reads(source, {TIMES})").result[-1]
    assert last["spans"][f"{UUID} busy"] == last["spans"][f"{UUID} memory_busy"] == [4.1, 5.1]
    assert last["values"][f"{UUID} busy"] == pytest.approx(0.6)
    assert last["values"][f"{UUID} memory_busy"] == pytest.approx(0.2)


def test_one_buffer_that_is_empty_leaves_the_other(driven: Drive) -> None:
    gpu = h100(utilization=60.0, memory_utilization=steps((0, 0), (2.0, Code.NOT_FOUND)))
    *_, last = driven(one(gpu), f"source = make(); result = reads(source, {TIMES}, 6.1)").result
    assert last["values"][f"{UUID} busy"] == pytest.approx(0.6)
    assert last["absent"][f"{UUID} memory_busy"] == "no_data"  # for longer than windows last


def test_one_field_without_a_buffer_comes_from_the_rates_alone(driven: Drive) -> None:
    scenario = replace(
        one(h100(utilization=60.0)), faults=(failing("nvmlDeviceGetSamples", Code.NOT_SUPPORTED, limit=1),)
    )
    *_, last = driven(scenario, f"source = make(); result = reads(source, {TIMES})").result
    assert last["spans"][f"{UUID} busy"] == [4.1, 5.1]
    assert last["spans"][f"{UUID} memory_busy"] == pytest.approx([4.0, 5.0])  # its own windows
    assert last["values"][f"{UUID} busy"] == pytest.approx(0.6)


def test_a_buffer_that_fails_for_once_is_read_again_and_nothing_is_lost(driven: Drive) -> None:
    scenario = replace(one(h100()), faults=(failing("nvmlDeviceGetSamples", Code.UNKNOWN, start=3, end=4),))
    found = driven(scenario, f"source = make(); result = reads(source, {TIMES})").result
    key = f"{UUID} busy"
    assert found[3]["absent"][key] == "error"
    assert key not in found[3]["values"]
    assert found[4]["spans"][key] == pytest.approx([found[2]["spans"][key][1], 4.0])


def test_a_claim_that_cannot_be_had_is_absent(driven: Drive) -> None:
    faults = (
        failing("nvmlDeviceGetSamples", Code.NOT_SUPPORTED),
        failing("nvmlDeviceGetUtilizationRates", Code.NOT_SUPPORTED),
    )
    *_, last = driven(replace(one(h100()), faults=faults), f"source = make(); result = reads(source, {TIMES})").result
    assert last["absent"][f"{UUID} busy"] == last["absent"][f"{UUID} memory_busy"] == "not_supported"
    assert f"{UUID} sm" in last["values"]


@pytest.mark.parametrize(("step", "again"), [(-3600.0, 5.1), (-2.0, 6.1), (2.0, 5.1), (3600.0, 5.1)])
def test_a_wall_clock_that_is_set_makes_no_window_up(driven: Drive, step: float, again: float) -> None:
    """The driver stamps with the wall clock: the test's copy of its buffer moves with it."""
    script = f"""
    import pynvml
    from exporter.sources.nvml.claim import Buffer
    real = Buffer.since
    moved_at, step = 3.0, 0
    base = 1_767_225_600.0
    def samples(self, handle, seen):
        value_type, found = real(self, handle, 0)
        for sample in found:
            if sample.timeStamp / 1e6 - base > moved_at:
                sample.timeStamp += int(step * 1e6)
        found = [sample for sample in found if sample.timeStamp > seen]
        if not found:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_FOUND)
        return value_type, found
    Buffer.since = samples
    source = NvmlSource(wall=lambda: base + at + step)
    result = reads(source, 0.1, 1.1, 2.1, 3.0)
    step = {step}
    result += reads(source, 4.1, 5.1, 6.1, 7.1)
    """
    found = driven(one(h100(utilization=60.0)), script).result
    spans = [batch["spans"].get(f"{UUID} busy") for batch in found]
    times = (0.1, 1.1, 2.1, 3.0, 4.1, 5.1, 6.1, 7.1)
    seen = [(*span, at) for span, at in zip(spans, times, strict=True) if span]
    first = next(at for *_, at in seen if at > 3.0)
    assert first == again  # one read later; two seconds back are waited out
    for start, end, at in seen:
        assert at - 1.2 < end <= at + 0.01
        assert start < end
    for (_, before, _), (after, _, _) in pairwise(seen):
        assert after >= before - 0.01  # no time is told twice
    assert spans[-1] == pytest.approx([6.0, 7.0], abs=0.01)
    assert found[-1]["values"][f"{UUID} busy"] == pytest.approx(0.6)


def test_every_gpu_has_its_own_claim(driven: Drive) -> None:
    node = h100_node(2)
    node = replace(node, gpus=(replace(node.gpus[0], utilization=90.0), replace(node.gpus[1], utilization=10.0)))
    *_, last = driven(node, f"source = make(); result = reads(source, {TIMES})").result
    assert [last["values"][f"{gpu.uuid} busy"] for gpu in node.gpus] == pytest.approx([0.9, 0.1])


@pytest.mark.parametrize("period", [1 / 6, 0.25, 1.0])
def test_ten_reads_a_second_ask_when_a_sample_is_due_and_miss_none(driven: Drive, period: float) -> None:
    flapping = steps(*((float(second), 100.0 * (second % 2)) for second in range(13)))
    scenario = replace(one(h100(utilization=flapping)), sample_period=period)
    found = driven(scenario, "source = make(); result = [read(source, i / 10) for i in range(121)]")
    key = f"{UUID} busy"
    told = [(*batch["spans"][key], batch["values"][key]) for batch in found.result if key in batch["spans"]]
    for (_, before, _), (after, _, _) in pairwise(told):
        assert after == pytest.approx(before, abs=1e-3)  # no window is left out
    start, end = told[0][0], told[-1][1]
    assert end - start > 10.5
    busy = sum((end - start) * mean for start, end, mean in told)
    assert busy == pytest.approx(sum(min(end, s + 1) - max(start, s) for s in range(1, 12, 2)), abs=0.1)
    late = [batch_at / 10 - span[1] for batch_at, batch in enumerate(found.result) if (span := batch["spans"].get(key))]
    assert max(late) <= 0.1 + 1e-3  # each sample is read as soon as it is there
    asked = found.playing.report().called("nvmlDeviceGetSamples")
    assert asked / 2 <= 20 * period + 12 * (1 / period + 1.2) + 1  # until two are known; each one, and once a second


def test_samples_that_come_closer_than_before_are_not_left_waiting(driven: Drive) -> None:
    """The next one is guessed from the last two; a guess that is far off costs a second."""
    script = """
    from exporter.sources.nvml.claim import Buffer
    real = Buffer.since
    def since(self, handle, seen):
        value_type, found = real(self, handle, seen)
        return value_type, [s for s in found if s.timeStamp > 1_767_225_608_000_000 or s.timeStamp % 2_000_000 < 1000]
    Buffer.since = since
    source = make(); result = [read(source, i / 10)["spans"] for i in range(121)]
    """
    spans = driven(one(h100()), script).result
    ends = [(at / 10, found[f"{UUID} busy"][1]) for at, found in enumerate(spans) if f"{UUID} busy" in found]
    assert [end for _, end in ends if end <= 8.01] == pytest.approx([4.0, 6.0, 8.0])
    later = [(at, end) for at, end in ends if at > 9.0]
    assert len(later) >= 17
    assert all(at - end <= 0.2 for at, end in later)


def test_more_samples_than_there_is_room_for(driven: Drive) -> None:
    scenario = replace(one(h100(utilization=60.0)), sample_period=0.01, sample_ring=2000)
    found = driven(scenario, "source = make(); result = reads(source, 10, 20, 21, 22, 23)").result
    spans = [batch["spans"].get(f"{UUID} busy") for batch in found]
    told = [span for span in spans if span]
    for (_, before), (after, _) in pairwise(told):
        assert after == pytest.approx(before, abs=1e-3)
    assert found[-1]["values"][f"{UUID} busy"] == pytest.approx(0.6)
