"""What is asked for seldom is there in every batch all the same, and what is refused is absent with its reason."""

from __future__ import annotations

from dataclasses import replace

import pytest

from exporter.sources.nvml.context import FIELDS, MEMORY, SLOW, TEMPERATURE
from tests.abi.nvml.codes import Code
from tests.abi.nvml.happenings import failing
from tests.abi.nvml.meeting import h100, one
from tests.abi.nvml.scenario import Ecc, NvLink, RemappedRows, RetiredPages, Scenario, steps
from tests.abi.scenarios.nodes import h100_mig_node, h100_node
from tests.abi.scenarios.workloads import GEMM, running
from tests.sources.nvml.conftest import Drive

UUID = h100().uuid
SELDOM = {*SLOW, *TEMPERATURE, "nvlink_links_up"}
PIPELINE = """
from exporter.clock import VirtualClock
from exporter.core.pipeline import Pipeline
source, clock = make(), VirtualClock()
pipeline = Pipeline(clock, 0.1)
def view():
    set_clock(clock.monotonic())
    pipeline.absorb(source.read(clock.monotonic()))
    clock.advance(0.1)
    return {str(v.device.entity): sorted({*v.instants, *v.absences}) for v in pipeline.publish().entities}
"""


def _known() -> Scenario:
    """One H100 with a value in every field."""
    gpu = h100(
        ecc=Ecc(corrected_aggregate=7.0, uncorrected_aggregate=1.0),
        remapped_rows=RemappedRows(correctable=3.0, uncorrectable=2.0, failed=1.0),
        retired_pages=RetiredPages(single_bit=4.0, double_bit=5.0),
    )
    assert gpu.pcie is not None
    return one(running(replace(gpu, pcie=replace(gpu.pcie, replays=9.0)), GEMM))


def test_every_batch_of_a_minute_has_every_field(driven: Drive) -> None:
    batches = driven(_known(), "source = make(); result = reads(source, *range(61))").result
    assert len(SELDOM) == 14
    for batch in batches:
        there = {key.split(" ")[1].split(":")[0] for key in batch["values"]}
        assert there >= FIELDS
        assert len(batch["links"][UUID]) == 18


@pytest.mark.parametrize(("scenario", "of_instances"), [(h100_node(2), set()), (h100_mig_node(), set(MEMORY))])
def test_no_gauge_flickers_at_ten_reads_a_second(driven: Drive, scenario: Scenario, of_instances: set[str]) -> None:
    views = driven(scenario, PIPELINE + "result = [view() for _ in range(610)]").result
    instants = FIELDS - {"clock_event", "energy", "pcie_replay", "ecc_corrected", "ecc_uncorrected"}
    for view in views:
        for name, there in view.items():
            assert set(there) >= (of_instances if "/" in name else instants)


def test_what_a_field_says_is_what_its_function_says(driven: Drive) -> None:
    """On a driver that has no field values, or not these."""
    read = "source = make(); result = reads(source, 0, 1)[-1]['values']"
    fields = {key: value for key, value in driven(_known(), read).result.items() if key.split(" ")[1] in FIELDS}
    for fault in (
        failing("nvmlDeviceGetFieldValues", Code.FUNCTION_NOT_FOUND),
        failing("field.*", Code.NOT_SUPPORTED),
        failing("field.*", Code.INVALID_ARGUMENT),
    ):
        found = driven(replace(_known(), faults=(fault,)), read)
        values = {key: value for key, value in found.result.items() if key.split(" ")[1] in FIELDS}
        untold = fields.keys() - values.keys()
        assert untold == {f"{UUID} memory_temperature"}  # which no function says
        assert values == {key: value for key, value in fields.items() if key not in untold}
    told = {key.split(" ")[1]: value for key, value in fields.items()}
    expected = {"ecc_corrected": 7, "ecc_uncorrected": 1, "pcie_replay": 9, "retired_pages": 9, "remap_failed": 1}
    assert {field: told[field] for field in expected} == expected
    assert (told["remapped_rows_corrected"], told["remapped_rows_uncorrected"]) == (3, 2)
    assert (told["power"], told["power_limit"]) == pytest.approx((665.0, 700.0))


@pytest.mark.parametrize(
    ("field", "call", "seconds"),
    [("power_limit", "field.190", 10), ("temperature", "nvmlDeviceGetTemperature", 5), ("energy", "field.83", 1)],
)
def test_a_field_that_is_refused_is_absent_until_it_is_not(driven: Drive, field: str, call: str, seconds: int) -> None:
    scenario = replace(_known(), faults=(failing(call, Code.NO_PERMISSION, start=3, end=13),))
    batches = driven(scenario, "source = make(); result = reads(source, *range(30))").result
    key = f"{UUID} {field}"
    reasons = [batch["absent"].get(key) for batch in batches]
    refused, back = reasons.index("not_permitted"), 30 - reasons[::-1].index("not_permitted")
    assert 3 <= refused < 3 + seconds
    assert 13 <= back < 13 + seconds
    assert set(reasons[refused:back]) == {"not_permitted"}
    for at, batch in enumerate(batches):
        assert (key in batch["values"]) == (not refused <= at < back)


def test_a_value_that_changes_is_seen_within_its_pace(driven: Drive) -> None:
    scenario = one(h100(temperature=steps((0, 40), (21, 70)), ecc=Ecc(corrected_aggregate=steps((0, 0), (21, 5)))))
    batches = driven(scenario, "source = make(); result = reads(source, *range(40))").result
    hot = [batch["values"][f"{UUID} temperature"] for batch in batches]
    corrected = [batch["values"][f"{UUID} ecc_corrected"] for batch in batches]
    assert hot == [40] * 25 + [70] * 15
    assert corrected == [0] * 30 + [5] * 10


def test_links_that_sleep_or_take_no_traffic(driven: Drive) -> None:
    """States 2 and 3 of nvml.h; a driver without the field tells up and down alone."""
    node = one(h100(nvlink=NvLink(4, states={1: 2.0, 2: 3.0, 3: 0.0})))
    read = "source = make(); result = reads(source, 0)[-1]"
    found = driven(node, read).result
    assert found["links"][UUID] == {"0": "up", "1": "up", "2": "disabled", "3": "down"}
    assert found["values"][f"{UUID} nvlink_links_up"] == 2
    old = replace(node, faults=(failing("field.165", Code.NOT_SUPPORTED),))
    assert driven(old, read).result["links"][UUID]["3"] == "down"


def test_links_that_fail_for_once_are_asked_for_again(driven: Drive) -> None:
    scenario = replace(one(h100()), faults=(failing("field.165", Code.UNKNOWN, end=5),))
    first, *_, last = driven(scenario, "source = make(); result = reads(source, *range(11))").result
    assert first["absent"][f"{UUID} nvlink_links_up"] == "error"
    assert first["links"] is None
    assert last["values"][f"{UUID} nvlink_links_up"] == 18


def test_an_instance_that_is_gone_between_looks_is_noticed_at_once(driven: Drive) -> None:
    node = h100_mig_node()
    board = node.gpus[0]
    assert board.mig is not None
    whole = board.mig.layouts[0]
    cut = replace(whole, start=2.05, instances=whole.instances[:1])
    scenario = replace(node, gpus=(replace(board, mig=replace(board.mig, layouts=(whole, cut))),))
    script = "source = make(); result = [len(read(source, i / 10)['devices']) for i in range(30)]"
    found = driven(scenario, script)
    assert found.result == [5] * 22 + [2] * 8  # one read is refused
    assert found.playing.report().open_mig_samples == 2
