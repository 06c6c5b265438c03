"""What goes wrong, and what the person on call is told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.abi.nvml.build import player_library
from tests.abi.nvml.meeting import h100, one
from tests.abi.nvml.scenario import Code, Layout, Scenario, failing, hanging, xid
from tests.abi.scenarios.nodes import h100_mig_node, h100_node
from tests.sources.nvml.conftest import Drive
from tests.sources.nvml.driving import drive

READS = "source = make(); result = reads(source, 0.0, 1.0, 2.0, 3.0)"


def test_without_the_library(driven: Drive, tmp_path: Path) -> None:
    found = drive(
        Scenario(()),
        tmp_path / "nothing",
        tmp_path / "x",
        "result = read(make(), 0.0)",
        {"LD_LIBRARY_PATH": str(tmp_path)},
    )
    assert "libnvidia-ml.so.1 is not here" in found.result["error"]
    assert "NVIDIA_VISIBLE_DEVICES" in found.result["remedy"]


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (Code.DRIVER_NOT_LOADED, "the NVIDIA driver is not loaded"),
        (Code.LIB_RM_VERSION_MISMATCH, "different versions"),
        (Code.NO_PERMISSION, "no permission"),
        (Code.UNKNOWN, "cannot be opened"),
    ],
)
def test_a_driver_that_cannot_be_opened_and_comes_up_later(driven: Drive, code: Code, said: str) -> None:
    scenario = replace(h100_node(1), faults=(failing("nvmlInit*", code, end=10),))
    down, up = driven(scenario, "source = make(); result = reads(source, 0.0, 10.0)").result
    assert said in down["error"]
    assert down["remedy"]
    assert len(up["devices"]) == 1


def test_a_lost_gpu_is_named_and_the_others_go_on(driven: Drive) -> None:
    scenario = replace(h100_node(2), faults=(failing("*", Code.GPU_IS_LOST, gpu="gpu1", start=2),))
    *_, before, after = driven(scenario, "source = make(); result = reads(source, 0, 1, 2, 3)").result
    assert len(before["devices"]) == len(after["devices"]) == 1
    ((what, why, remedy),) = after["problems"]
    lost = h100_node(2).gpus[1].uuid
    assert lost in what
    assert "fallen off the bus" in why
    assert "--gpu-reset" in remedy


def test_a_gpu_that_comes_back_is_read_again(driven: Drive) -> None:
    scenario = replace(h100_node(2), faults=(failing("*", Code.GPU_IS_LOST, gpu="gpu1", start=2, end=20),))
    found = driven(scenario, "source = make(); result = reads(source, 0, 1, 2, 21, 60, 61, 62, 63)").result
    assert len(found[-1]["devices"]) == 2
    keys = [key for key in found[-1]["values"] if key.endswith(" sm")]
    assert len(keys) == 2


def test_a_call_that_never_returns_costs_its_gpu_alone(driven: Drive) -> None:
    scenario = replace(h100_node(2), faults=(hanging("nvmlDeviceGetPowerUsage", gpu="gpu1", start=2, end=30),))
    script = """
    source = make(deadline=0.3)
    result = reads(source, 0, 1, 2, 3, 4)
    threads = threading.active_count()
    result += reads(source, 5, 6, 7)
    result.append(threading.active_count() - threads)
    set_clock(31)
    time.sleep(0.3)
    result += reads(source, 32, 33, 34, 35)
    """
    found = driven(scenario, script).result
    healthy = h100_node(2).gpus[0].uuid
    for batch in found[2:8]:
        assert list(batch["devices"]) == [healthy]
        assert "does not answer" in batch["problems"][0][0]
    assert found[8] == 0  # threads do not pile up
    assert len(found[-1]["devices"]) == 2
    assert not found[-1]["problems"]


def test_no_permission_for_gpm(driven: Drive) -> None:
    scenario = replace(h100_node(1), faults=(failing("nvmlGpmSampleGet", Code.NO_PERMISSION),))
    found = driven(scenario, READS)
    last = found.result[-1]
    ((what, _, remedy),) = last["problems"]
    assert "no profiling data" in what
    assert "CAP_SYS_ADMIN" in remedy
    (key,) = [key for key in last["absent"] if key.endswith(" sm")]
    assert last["absent"][key] == "not_permitted"
    assert found.playing.report().open_samples == 0  # freed, though each read took one


def test_an_old_driver_without_gpm_functions(tmp_path: Path) -> None:
    library = player_library(frozenset({"nvmlGpmQueryDeviceSupport", "nvmlDeviceGetSamples"}))
    last = drive(h100_node(1), library, tmp_path / "old", READS).result[-1]
    (busy,) = [key for key in last["spans"] if key.endswith(" busy")]
    assert last["spans"][busy] == [2.0, 3.0]  # without the buffer the window is that of the reads
    (key,) = [key for key in last["absent"] if key.endswith(" sm")]
    assert last["absent"][key] == "not_supported"


def test_one_metric_that_fails_costs_that_metric(driven: Drive) -> None:
    scenario = replace(h100_node(1), faults=(failing("gpm.5", Code.NOT_SUPPORTED), failing("gpm.10", Code.UNKNOWN)))
    last = driven(scenario, READS).result[-1]
    uuid = h100_node(1).gpus[0].uuid
    assert last["absent"][f"{uuid} tensor"] == "not_supported"
    assert last["absent"][f"{uuid} dram"] == "error"
    assert f"{uuid} sm" in last["values"]


def test_xids_are_counted_each_also_of_a_gpu_that_is_gone(driven: Drive) -> None:
    events = (xid(1.5, "gpu0", 31), xid(1.6, "gpu0", 31), xid(2.5, "gpu1", 79))
    faults = (failing("nvmlDevice*", Code.GPU_IS_LOST, gpu="gpu1", start=2.6),)
    script = """
    source = make()
    result = reads(source, 0, 1)
    for seconds in (2, 2.55, 3, 4):
        set_clock(seconds)
        time.sleep(0.8)
        result.append(read(source, seconds))
    """
    scenario = replace(h100_node(2), events=events, faults=faults)
    found = driven(scenario, script).result
    counted = [key.split(" ")[1] for batch in found for key in batch["values"] if " xid" in key]
    assert sorted(counted) == ["xid:31", "xid:79"] or sorted(counted) == ["xid:31", "xid:31", "xid:79"]


def test_mig_is_reconfigured_while_running(driven: Drive) -> None:
    node = h100_mig_node()
    board = node.gpus[0]
    assert board.mig is not None
    first = board.mig.layouts[0]
    layouts = (first, Layout(2.5, first.instances[:1]), Layout(4.5, enabled=False))
    scenario = replace(node, gpus=(replace(board, mig=replace(board.mig, layouts=layouts)),))
    found = driven(scenario, "source = make(); result = reads(source, 0, 1, 2, 3, 4, 5, 6, 7, 8)")
    counts = [len(batch["devices"]) - 1 for batch in found.result]
    assert counts == [4, 4, 4, 1, 1, 0, 0, 0, 0]
    last = found.result[-1]
    (uuid,) = last["devices"]
    assert f"{uuid} busy" in last["values"]  # whole again
    assert f"{uuid} sm" in last["values"]
    assert found.playing.report().open_mig_samples == 0


def test_a_long_run_leaks_no_sample(driven: Drive) -> None:
    flaky = failing("nvmlGpmSampleGet", Code.UNKNOWN, start=50, end=60)
    script = "source = make(); [read(source, t) for t in range(200)]; result = None"
    report = driven(replace(one(h100()), faults=(flaky,)), script).playing.report()
    assert report.open_samples == 2
    assert report.open_event_sets == 1
    assert report.init_count == 1
