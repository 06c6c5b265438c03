"""Boards that are cut into instances."""

import dataclasses

import pytest

from exporter.fields import CLAIM, LINKS, PROFILING
from exporter.model import Absence, Entity
from exporter.trust import ProfilingState
from tests.abi.dcgm.codes import Code, EntityKind
from tests.abi.dcgm.happenings import blanking, failing
from tests.abi.dcgm.scenario import GpuInstance
from tests.abi.dcgm.values import Window

from .conftest import Drive
from .driving import absences, of, values
from .nodes import board, gpu, instances, mig_gpu, node, uuid
from .observing import Observer

FIRST, SECOND = Entity(uuid(0), 1), Entity(uuid(0), 2)


def test_instances_are_measured_and_the_board_has_what_is_the_board_s(drive: Drive) -> None:
    """Field cases 2, 12, 35, 42: no claim, no power twice, no PCIe of an instance."""
    batch = drive(node(mig_gpu())).run(0.0, 3.0)[-1]
    got = {device.entity: set(values(batch, device.entity)) for device in batch.devices}
    memory = {"memory_total", "memory_free", "memory_used"}
    pipes = {"tensor_imma", "tensor_hmma", "tensor_dfma"}
    assert got[FIRST] == got[SECOND] == {*PROFILING, *pipes, *memory}
    assert not got[board()] & {*CLAIM, *PROFILING, *pipes}
    assert got[board()] >= {*LINKS, "power", "energy", "sm_clock", "temperature", *memory}
    assert {absences(batch, board())[name] for name in CLAIM} == {Absence.NOT_SUPPORTED}
    assert values(batch, FIRST)["sm"] == 0.25
    assert values(batch, SECOND)["sm"] == 0.75
    assert values(batch, FIRST)["memory_total"] == 40448 * 2**20


def test_instances_are_named_as_nvml_names_them(drive: Drive) -> None:
    """Not by DCGM's entity ids, which here are 0 and 1 while NVML's are 1 and 2."""
    whole, first, second = drive(node(mig_gpu())).read(0.0).devices
    assert (whole.entity, whole.mig_enabled) == (board(), True)
    assert (first.entity, first.mig_profile, first.mig_uuid) == (FIRST, "4g.40gb", "MIG-0-1")
    assert (second.entity, second.mig_profile, second.mig_uuid) == (SECOND, "3g.40gb", "MIG-0-2")
    assert first.index == whole.index == "0"
    assert set(first.fields) >= set(PROFILING)
    assert not set(whole.fields) & {*PROFILING, *CLAIM}
    assert first.model == whole.model


def test_a_name_that_is_no_profile_is_none(drive: Drive) -> None:
    named = tuple(
        dataclasses.replace(each, fields={**each.fields, 50: "NVIDIA H100", 54: uuid(0)}) for each in instances()
    )
    _, first, _ = drive(node(dataclasses.replace(mig_gpu(), instances=named))).read(0.0).devices
    assert (first.mig_profile, first.mig_uuid) == ("", "")


def test_a_mixed_node(drive: Drive) -> None:
    batch = drive(node(gpu(0), mig_gpu(1))).run(0.0, 3.0)[-1]
    assert values(batch, board(0))["busy"] == 1.0
    assert of(batch, "busy", board(1))[0].value is None
    assert values(batch, Entity(uuid(1), 2))["sm"] == 0.75
    assert len(of(batch, "power")) == 2


def test_cutting_a_board_while_running(drive: Drive) -> None:
    later = tuple(dataclasses.replace(each, present=(Window(15.0, 45.0),)) for each in instances())
    whole = gpu(instances=later, mig=(Window(15.0, 45.0),))
    driver = drive(node(whole))
    assert set(values(driver.run(0.0, 14.0)[-1])) >= {"busy", "sm"}
    cut = driver.run(15.0, 30.0)[-1]
    assert [device.entity for device in cut.devices] == [board(), FIRST, SECOND]
    assert "busy" not in values(cut, board())
    assert values(cut, FIRST)["sm"] == 0.25
    assert driver.report.open_groups == 2 * 2  # to watch, and to read
    again = driver.run(31.0, 60.0)[-1]
    assert [device.entity for device in again.devices] == [board()]
    assert set(values(again)) >= {"busy", "sm"}
    assert driver.report.open_groups == 2


def test_a_layout_that_changes(drive: Drive) -> None:
    """The same entity id of DCGM, another instance of NVML."""
    first, second = instances()
    gone = dataclasses.replace(second, present=(Window(end=20.0),))
    came = GpuInstance(5, 7, {**second.fields, 1002: 0.5}, second.computes, present=(Window(20.0),))
    driver = drive(node(dataclasses.replace(mig_gpu(), instances=(first, gone, came))))
    assert [device.entity for device in driver.run(0.0, 15.0)[-1].devices] == [board(), FIRST, SECOND]
    batch = driver.run(16.0, 45.0)[-1]
    third = Entity(uuid(0), 7)
    assert [device.entity for device in batch.devices] == [board(), FIRST, third]
    assert values(batch, third)["sm"] == 0.5
    assert values(batch, FIRST)["sm"] == 0.25


def test_mig_mode_without_instances(drive: Drive) -> None:
    batch = drive(node(gpu(mig=(Window(),)))).run(0.0, 3.0)[-1]
    (device,) = batch.devices
    assert device.mig_enabled
    assert not set(values(batch)) & {*CLAIM, *PROFILING}
    assert values(batch)["pcie_receive"] == 5e9


def test_one_instance_that_is_blank_leaves_the_others_alone(drive: Drive) -> None:
    """An instance without a compute instance has no values (DCGM's GPM manager)."""
    fault = blanking((1001, 1096), entity=(EntityKind.GPU_INSTANCE, 0))
    observer = Observer(drive(node(mig_gpu(), value_faults=(fault,))))
    views = observer.until(30.0)
    assert views[SECOND].profiling is ProfilingState.OK
    assert views[SECOND].means["sm"] == pytest.approx(0.75)
    assert "sm" not in views[FIRST].means
    assert views[board()].profiling is ProfilingState.UNSUPPORTED


def test_a_hostengine_that_may_not_look_for_instances(drive: Drive) -> None:
    driver = drive(node(gpu(), call_faults=(failing("dcgmGetGpuInstanceHierarchy", Code.REQUIRES_ROOT),)))
    batch = driver.run(0.0, 2.0)[-1]
    assert values(batch)["sm"] == 0.98
    (problem,) = [problem for problem in batch.problems if "MIG" in problem.what]
    assert "root" in problem.remedy
