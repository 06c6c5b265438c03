"""Calls into the driver that do not return: they cost their GPU alone, and no thread more than one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.abi.nvml.codes import Code
from tests.abi.nvml.happenings import failing, hanging
from tests.abi.scenarios.nodes import h100_node
from tests.sources.nvml.conftest import Drive

CALLS = (
    "nvmlDeviceGetHandleByIndex*",
    "nvmlDeviceGetUUID",
    "nvmlDeviceGetName",
    "nvmlDeviceRegisterEvents",
    "nvmlGpmSampleGet",
    "nvmlDeviceGetSamples",
    "nvmlDeviceGetFieldValues",
)
ONCE = ("nvmlDeviceGetName", "nvmlDeviceRegisterEvents")  # called for a GPU that is new, only
SCRIPT = """
source = make(deadline=0.3)
result = reads(source, 0, 1, 2, 3, 4)
threads = threading.active_count()
result += reads(source, 5, 6, 7)
grown = threading.active_count() - threads
set_clock(31)
time.sleep(0.3)
result += reads(source, 32, 33, 34, 35)
result.append(grown)
"""


@pytest.mark.parametrize(("call", "start"), [(c, s) for c in CALLS for s in (0, 2) if not (s and c in ONCE)])
def test_it_costs_its_gpu_alone(driven: Drive, call: str, start: int) -> None:
    scenario = replace(h100_node(2), faults=(hanging(call, gpu="gpu1", start=start, end=30),))
    *found, grown = driven(scenario, SCRIPT).result
    healthy = h100_node(2).gpus[0].uuid
    for batch in found[start:8]:
        assert list(batch["devices"]) == [healthy]
        ((what, why, remedy),) = batch["problems"]
        assert "does not answer" in what
        assert "0.3 s" in why
        assert "--gpu-reset" in remedy
    for batch in found[2:8]:
        assert f"{healthy} sm" in batch["values"]
    assert grown == 0
    assert len(found[-1]["devices"]) == 2
    assert len([key for key in found[-1]["values"] if key.endswith(" sm")]) == 2
    assert not found[-1]["problems"]


def test_the_library_is_not_shut_under_a_call(driven: Drive) -> None:
    """Neither at the end, nor to look for another GPU that is lost."""
    faults = (
        hanging("nvmlDeviceGetFieldValues", gpu="gpu1", start=2),
        failing("*", Code.GPU_IS_LOST, gpu="gpu2", start=2),
    )
    script = """
    source = make(deadline=0.2)
    reads(source, 0, 1, 2, 3, 50, 51, 100)
    before = time.monotonic()
    source.close()
    result = time.monotonic() - before < 5
    """
    found = driven(replace(h100_node(3), faults=faults), script)
    assert found.result is True
    report = found.playing.report()
    assert report.called("nvmlShutdown") == 0
    assert report.hanging == 1
    assert report.open_samples == 2  # of the GPU that hangs


def test_threads_do_not_pile_up_while_the_driver_lists_nothing(driven: Drive) -> None:
    faults = (
        hanging("nvmlDeviceGetFieldValues", gpu="gpu1", start=2),
        failing("nvmlDeviceGetCount*", Code.UNKNOWN, start=4),
    )
    script = """
    source = make(deadline=0.2)
    reads(source, 0, 1, 2, 3)
    threads = threading.active_count()
    errors = reads(source, *range(4, 14))
    result = [threading.active_count() - threads, errors[-1]["error"]]
    """
    grown, error = driven(replace(h100_node(2), faults=faults), script).result
    assert grown == 0
    assert "does not list its GPUs" in error
