"""What goes wrong with the driver or with single values, and what the person on call is told."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from tests.abi.nvml.codes import Code
from tests.abi.nvml.happenings import failing
from tests.abi.nvml.meeting import h100, one
from tests.abi.nvml.scenario import Scenario
from tests.abi.scenarios.nodes import h100_node
from tests.abi.scenarios.workloads import GEMM, running
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


def test_one_metric_that_fails_costs_that_metric(driven: Drive) -> None:
    scenario = replace(h100_node(1), faults=(failing("gpm.5", Code.NOT_SUPPORTED), failing("gpm.10", Code.UNKNOWN)))
    last = driven(scenario, READS).result[-1]
    uuid = h100_node(1).gpus[0].uuid
    assert last["absent"][f"{uuid} tensor"] == "not_supported"
    assert last["absent"][f"{uuid} dram"] == "error"
    assert f"{uuid} sm" in last["values"]


def test_a_long_run_leaks_no_sample(driven: Drive) -> None:
    flaky = failing("nvmlGpmSampleGet", Code.UNKNOWN, start=50, end=60)
    script = "source = make(); [read(source, t) for t in range(200)]; result = None"
    report = driven(replace(one(h100()), faults=(flaky,)), script).playing.report()
    assert report.open_samples == 2
    assert report.open_event_sets == 1
    assert report.init_count == 1


def test_a_gpu_that_may_not_be_opened(driven: Drive) -> None:
    scenario = replace(h100_node(2), faults=(failing("nvmlDeviceGetHandleByIndex*", Code.NO_PERMISSION, gpu="gpu1"),))
    last = driven(scenario, READS).result[-1]
    ((what, why, remedy),) = last["problems"]
    assert what == "GPU number 1 cannot be read"
    assert "refuses" in why
    assert "/dev/nvidia1" in remedy
    assert len(last["devices"]) == 1


def test_values_that_are_not_numbers_are_blank(driven: Drive) -> None:
    gpu = running(h100(), GEMM)
    assert gpu.gpm is not None
    last = driven(one(replace(gpu, gpm={**gpu.gpm, 5: math.nan})), READS).result[-1]
    assert last["absent"][f"{gpu.uuid} tensor"] == "blank"
    assert last["values"][f"{gpu.uuid} sm"] == pytest.approx(0.98)


def test_metrics_that_fail_together_cost_their_interval(driven: Drive) -> None:
    scenario = replace(one(running(h100(), GEMM)), faults=(failing("nvmlGpmMetricsGet", Code.UNKNOWN, start=3, end=4),))
    found = driven(scenario, "source = make(); result = reads(source, 0, 1, 2, 3, 4); source.close()")
    uuid = h100().uuid
    *_, failed, after = found.result
    assert failed["absent"][f"{uuid} sm"] == "error"
    assert after["spans"][f"{uuid} sm"] == [3.0, 4.0]  # the sample of the failed one is good
    assert found.playing.report().open_samples == 0


@pytest.mark.parametrize(
    ("field", "call"), [("power", "field.185"), ("ecc_corrected", "field.5"), ("sm_clock", "*GetClockInfo")]
)
def test_a_value_that_fails_is_absent_and_the_others_are_there(driven: Drive, field: str, call: str) -> None:
    scenario = replace(one(h100()), faults=(failing(call, Code.UNKNOWN),))
    last = driven(scenario, READS).result[-1]
    assert last["absent"][f"{h100().uuid} {field}"] == "error"
    assert f"{h100().uuid} {field}" not in last["values"]
    assert f"{h100().uuid} energy" in last["values"]


def test_an_error_of_our_own_costs_its_gpu_alone(driven: Drive) -> None:
    script = """
    source = make()
    reads(source, 0)
    def broken(handle, kind):
        if pynvml.nvmlDeviceGetMinorNumber(handle) == 1:
            raise ValueError("odd answer")
        return 60.0
    import pynvml
    pynvml.nvmlDeviceGetClockInfo = broken
    result = reads(source, 1, 2)
    """
    found = driven(h100_node(2), script)
    last = found.result[-1]
    assert list(last["devices"]) == [h100_node(2).gpus[0].uuid]
    ((what, why, _),) = last["problems"]
    assert h100_node(2).gpus[1].uuid in what
    assert why == "ValueError: odd answer"
    assert "Traceback" in found.log


def test_a_library_that_is_shut_under_us_is_opened_again(driven: Drive) -> None:
    script = """
    source = make()
    reads(source, 0, 1, 2)
    import pynvml
    pynvml.nvmlShutdown()
    result = reads(source, 3, 4, 5, 6)
    """
    *_, last = driven(h100_node(2), script).result
    assert len([key for key in last["values"] if key.endswith(" sm")]) == 2
