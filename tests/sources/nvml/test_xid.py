"""Xids: each is counted once, also of a GPU that is gone and over a new opening of the library."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.abi.nvml.codes import Code
from tests.abi.nvml.happenings import failing, xid
from tests.abi.scenarios.nodes import h100_node
from tests.sources.nvml.conftest import Drive

LATER = """
def later(*times):
    for seconds in times:
        set_clock(seconds)
        time.sleep(0.3)
        result.append(read(source, seconds))
source = make()
"""


def _xids(found: Any) -> list[list[Any]]:
    return sorted([uuid, code, value] for batch in found for uuid, code, value in batch["xids"])


def test_each_is_counted_also_of_a_gpu_that_is_gone(driven: Drive) -> None:
    node = h100_node(2)
    events = (xid(1.5, "gpu0", 31), xid(1.6, "gpu0", 31), xid(1.7, "gpu0", 13), xid(2.5, "gpu1", 79))
    faults = (failing("nvmlDevice*", Code.GPU_IS_LOST, gpu="gpu1", start=2.5),)
    scenario = replace(node, events=events, faults=faults)
    found = driven(scenario, LATER + "result = reads(source, 0, 1); later(2, 3, 4); source.close()")
    first, second = (gpu.uuid for gpu in node.gpus)
    assert _xids(found.result) == [[first, "13", 1.0], [first, "31", 1.0], [first, "31", 1.0], [second, "79", 1.0]]
    (with_79,) = [batch for batch in found.result if [second, "79", 1.0] in batch["xids"]]
    assert second in with_79["devices"]  # listed once more, so that it is counted
    assert found.playing.report().open_event_sets == 0


def test_those_before_a_new_opening_are_not_lost(driven: Drive) -> None:
    """They wait in the event set when the library is shut to look for the lost GPU."""
    node = h100_node(2)
    faults = (failing("*", Code.GPU_IS_LOST, gpu="gpu1", start=2),)
    scenario = replace(node, faults=faults, events=(xid(40.5, "gpu0", 31),))
    found = driven(scenario, LATER + "result = reads(source, 0, 1, 2, 3); later(41, 42)")
    assert found.playing.report().called("nvmlInitWithFlags") == 2
    assert _xids(found.result) == [[node.gpus[0].uuid, "31", 1.0]]


def test_a_gpu_that_is_back_is_watched_again(driven: Drive) -> None:
    node = h100_node(2)
    faults = (failing("*", Code.GPU_IS_LOST, gpu="gpu1", start=2, end=5),)
    scenario = replace(node, faults=faults, events=(xid(6.5, "gpu1", 31),))
    found = driven(scenario, LATER + "result = reads(source, 0, 1, 2, 5, 6); later(7)")
    assert _xids(found.result) == [[node.gpus[1].uuid, "31", 1.0]]
    assert found.playing.report().called("nvmlDeviceRegisterEvents") == 3


def test_a_gpu_that_cannot_be_watched_says_so(driven: Drive) -> None:
    scenario = replace(h100_node(1), faults=(failing("nvmlDeviceRegisterEvents", Code.NOT_SUPPORTED),))
    found = driven(scenario, "source = make(); result = reads(source, 0, 1, 2)")
    assert found.result[-1]["absent"][f"{scenario.gpus[0].uuid} xid"] == "not_supported"
    assert found.playing.report().called("nvmlDeviceRegisterEvents") == 1
    assert found.log.count("cannot be watched") == 1


def test_a_refusal_for_some_reads_is_tried_again(driven: Drive) -> None:
    faults = (failing("nvmlDeviceRegisterEvents", Code.UNKNOWN, end=2),)
    scenario = replace(h100_node(1), faults=faults, events=(xid(2.5, "gpu0", 31),))
    driven_ = driven(scenario, LATER + "result = reads(source, 0, 1, 2); later(3)")
    found, uuid = driven_.result, scenario.gpus[0].uuid
    assert [batch["absent"].get(f"{uuid} xid") for batch in found] == ["error", "error", None, None]
    assert _xids(found) == [[uuid, "31", 1.0]]
    assert driven_.log.count("cannot be watched") == 1


def test_without_event_sets_the_rest_is_read(driven: Drive) -> None:
    scenario = replace(h100_node(1), faults=(failing("nvmlEventSetCreate", Code.NO_PERMISSION),))
    *_, last = driven(scenario, "source = make(); result = reads(source, 0, 1, 2); source.close()").result
    uuid = scenario.gpus[0].uuid
    assert last["absent"][f"{uuid} xid"] == "not_permitted"
    assert f"{uuid} sm" in last["values"]
