"""MIG while running: instances that come, go, and come back as others; and none that cannot be destroyed."""

from __future__ import annotations

from dataclasses import replace

from tests.abi.nvml.codes import Code
from tests.abi.nvml.happenings import failing
from tests.abi.nvml.scenario import Layout, Scenario
from tests.abi.scenarios.mig import H100_PROFILES, instance
from tests.abi.scenarios.nodes import h100_mig_node
from tests.sources.nvml.conftest import Drive


def _with_layouts(*layouts: Layout) -> Scenario:
    node = h100_mig_node()
    board = node.gpus[0]
    assert board.mig is not None
    return replace(node, gpus=(replace(board, mig=replace(board.mig, layouts=layouts)),))


def test_mig_is_reconfigured_while_running(driven: Drive) -> None:
    every = ("gi2", "gi3", "gi9", "gi10")
    scenario = _with_layouts(Layout(0, every), Layout(2.5, every[:1]), Layout(4.5, enabled=False))
    found = driven(scenario, "source = make(); result = reads(source, 0, 1, 2, 3, 4, 5, 6, 7, 8)")
    counts = [len(batch["devices"]) - 1 for batch in found.result]
    assert counts == [4, 4, 4, 1, 1, 0, 0, 0, 0]
    last = found.result[-1]
    (uuid,) = last["devices"]
    assert f"{uuid} busy" in last["values"]  # whole again
    assert f"{uuid} sm" in last["values"]
    assert found.playing.report().open_mig_samples == 0


def test_a_number_that_comes_back_as_another_instance_begins_anew(driven: Drive) -> None:
    node = h100_mig_node()
    board = node.gpus[0]
    assert board.mig is not None
    other = instance(board, H100_PROFILES["1g.10gb"], 9, key="again", start=6)
    layouts = (Layout(0, ("gi9",)), Layout(3.5, ("again",)))
    mig = replace(board.mig, instances=(*board.mig.instances, other), layouts=layouts)
    found = driven(replace(node, gpus=(replace(board, mig=mig),)), "source = make(); result = reads(source, *range(8))")
    name = f"{board.uuid}/9"
    spans = [batch["spans"].get(f"{name} sm") for batch in found.result]
    assert spans == [None, None, [1.0, 2.0], [2.0, 3.0], None, None, [5.0, 6.0], [6.0, 7.0]]
    assert not [batch["absent"] for batch in found.result if batch["absent"].get(f"{name} sm") == "error"]
    assert found.playing.report().open_mig_samples == 2


def test_an_instance_can_be_destroyed_after_the_next_read(driven: Drive) -> None:
    """As nvidia-smi does it: the compute instance first, then the GPU instance. Nothing of ours is in its way."""
    script = """
    source = make()
    before = reads(source, 0, 1, 2)[-1]
    import pynvml
    device = pynvml.nvmlDeviceGetHandleByIndex(0)
    instance = pynvml.nvmlDeviceGetGpuInstanceById(device, 9)
    pynvml.nvmlComputeInstanceDestroy(pynvml.nvmlGpuInstanceGetComputeInstanceById(instance, 0))
    after = read(source, 3)
    pynvml.nvmlGpuInstanceDestroy(instance)
    result = [len(before["devices"]), len(after["devices"]), len(read(source, 4)["devices"])]
    """
    assert driven(h100_mig_node(), script).result == [5, 4, 4]


def test_a_board_whose_mode_cannot_be_read_for_once_stays_cut(driven: Drive) -> None:
    node = h100_mig_node()
    scenario = replace(node, faults=(failing("nvmlDeviceGetMigMode", Code.UNKNOWN, start=3, end=4),))
    *_, last = driven(scenario, "source = make(); result = reads(source, 0, 1, 2, 3)").result
    uuid = node.gpus[0].uuid
    assert last["devices"][uuid][3] is True
    assert len(last["devices"]) == 5
    assert last["absent"][f"{uuid} busy"] == "not_supported"


def test_two_compute_instances_are_one_gpu_instance(driven: Drive) -> None:
    node = h100_mig_node()
    board = node.gpus[0]
    assert board.mig is not None
    whole, *others = board.mig.instances
    (compute,) = whole.computes
    second = replace(compute, id=1, uuid=compute.uuid.replace("MIG-", "MIG-1", 1))
    cut = replace(whole, computes=(compute, second))
    scenario = replace(node, gpus=(replace(board, mig=replace(board.mig, instances=(cut, *others))),))
    found = driven(scenario, "source = make(); result = read(source, 0), source.read(1).devices.__len__()")
    first, count = found.result
    assert first["devices"][f"{board.uuid}/2"][4] == compute.uuid
    assert count == 1 + 4
