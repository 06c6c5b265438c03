"""GPUs that are lost, come back, are new, or change their place in the driver's list."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.abi.nvml.codes import Code
from tests.abi.nvml.happenings import failing
from tests.abi.nvml.scenario import steps
from tests.abi.scenarios.nodes import h100_node
from tests.abi.scenarios.workloads import GEMM, running
from tests.sources.nvml.conftest import Drive


def _measured(batch: Any) -> set[str]:
    return {key.split(" ")[0] for key in batch["values"] if key.endswith(" sm")}


def test_a_lost_gpu_is_named_and_the_others_go_on(driven: Drive) -> None:
    scenario = replace(h100_node(2), faults=(failing("*", Code.GPU_IS_LOST, gpu="gpu1", start=2),))
    found = driven(scenario, "source = make(); result = reads(source, 0, 1, 2, 3)")
    healthy, lost = (gpu.uuid for gpu in scenario.gpus)
    for batch in found.result[2:]:
        assert list(batch["devices"]) == [healthy]
        assert not [key for key in batch["absent"] if lost in key]
        ((what, why, remedy),) = batch["problems"]
        assert lost in what
        assert "fallen off the bus" in why
        assert f"--gpu-reset -i {lost}" in remedy
    assert _measured(found.result[-1]) == {healthy}
    assert found.playing.report().open_samples == 2  # those of the lost one were freed


def test_a_gpu_that_is_lost_within_a_read_is_lost_as_a_whole(driven: Drive) -> None:
    calls = (
        "nvmlDeviceGetMigMode",
        "nvmlGpmSampleGet",
        "nvmlDeviceGetSamples",
        "nvmlDeviceGetFieldValues",
        "field.83",
        "nvmlDeviceGetClockInfo",
        "nvmlDeviceGetCurrentClocksEventReasons",
    )
    for call in calls:
        scenario = replace(h100_node(1), faults=(failing(call, Code.GPU_IS_LOST, start=2),))
        *_, last = driven(scenario, "source = make(); result = reads(source, 0, 1, 2)").result
        assert not last["devices"], call
        assert "fallen off the bus" in last["problems"][0][1]


def test_a_gpu_that_comes_back_is_read_again(driven: Drive) -> None:
    scenario = replace(h100_node(2), faults=(failing("*", Code.GPU_IS_LOST, gpu="gpu1", start=2, end=20),))
    found = driven(scenario, "source = make(); result = reads(source, 0, 1, 2, 21, 22, 23)")
    uuid = scenario.gpus[1].uuid
    assert f"{uuid} sm" not in found.result[-2]["values"]  # its first interval
    assert found.result[-1]["spans"][f"{uuid} sm"] == [22.0, 23.0]
    assert not found.result[-1]["problems"]
    assert found.playing.report().open_samples == 4


def test_a_list_made_at_initialization_is_made_anew(driven: Drive) -> None:
    """As after an unbind and a bind: the driver lists the GPU only to those who open its library again."""
    node = h100_node(2)
    gone = replace(node.gpus[1], present=steps((0, 1), (5, 0), (12, 1)))
    faults = (failing("*", Code.GPU_IS_LOST, gpu=gone.key, start=5, end=36),)
    scenario = replace(node, gpus=(node.gpus[0], gone), faults=faults)
    script = "source = make(); result = reads(source, *range(0, 50)); source.close()"
    found = driven(scenario, script)
    assert _measured(found.result[10]) == {node.gpus[0].uuid}
    assert _measured(found.result[49]) == {gpu.uuid for gpu in node.gpus}
    report = found.playing.report()
    assert (report.open_samples, report.open_event_sets, report.init_count) == (0, 0, 0)


def test_a_gpu_that_is_not_listed_any_more_is_said(driven: Drive) -> None:
    node = h100_node(2)
    gone = replace(node.gpus[1], present=steps((0, 1), (5, 0)))
    scenario = replace(node, gpus=(node.gpus[0], gone), live_enumeration=True)
    *_, last = driven(scenario, "source = make(); result = reads(source, 0, 4, 6, 7)").result
    ((what, why, _),) = last["problems"]
    assert what == f"GPU {gone.uuid} is gone"
    assert "no longer lists it" in why


def test_a_gpu_that_stays_lost_costs_the_others_little(driven: Drive) -> None:
    scenario = replace(h100_node(2), faults=(failing("*", Code.GPU_IS_LOST, gpu="gpu1", start=5),))
    script = """
    source = make()
    result = [sum(key.endswith(" sm") for key in read(source, t)["values"]) for t in range(1500)]
    """
    found = driven(scenario, script)
    measured = found.result[5:]
    opened = found.playing.report().called("nvmlInitWithFlags")
    assert 5 <= opened <= 8  # at first, and after 30, 60, 120, 240, 480 s
    assert measured.count(0) <= 2 * (opened - 1)
    assert set(measured) == {0, 1}


def test_a_new_gpu_is_noticed(driven: Drive) -> None:
    node = h100_node(3)
    new = replace(node.gpus[2], present=steps((0, 0), (3, 1)))
    scenario = replace(node, gpus=(*node.gpus[:2], new), live_enumeration=True)
    found = driven(scenario, "source = make(); result = reads(source, *range(7))").result
    assert len(found[2]["devices"]) == 2
    assert new.uuid in found[3]["devices"]
    assert len(_measured(found[6])) == 3


def test_gpus_that_change_places_keep_their_identity(driven: Drive) -> None:
    node = h100_node(2)
    busy = running(node.gpus[0], GEMM)
    orders = ((0.0, ("gpu0", "gpu1")), (3.5, ("gpu1", "gpu0")))
    scenario = replace(node, gpus=(busy, node.gpus[1]), orders=orders, live_enumeration=True)
    found = driven(scenario, "source = make(); result = reads(source, *range(8))")
    for batch in found.result:
        assert batch["values"][f"{busy.uuid} power"] == 665.0
        assert not batch["problems"]
    assert found.result[-1]["devices"][busy.uuid][0] == "1"
    assert found.result[-1]["values"][f"{busy.uuid} sm"] > 0.9
    assert found.result[-1]["values"][f"{node.gpus[1].uuid} sm"] == 0.0
    assert found.playing.report().open_samples == 4


def test_some_gpus_only(driven: Drive) -> None:
    scenario = replace(h100_node(2), faults=(failing("*", Code.GPU_IS_LOST, gpu="gpu1", start=2),))
    wanted = scenario.gpus[0].uuid
    *_, last = driven(
        scenario, f"source = make(only=lambda uuid: uuid == {wanted!r}); result = reads(source, 0, 1, 2, 3)"
    ).result
    assert list(last["devices"]) == [wanted]
    assert not last["problems"]
