"""How many calls into the driver a GPU costs in the steady state. What a real one takes is not known: few are made."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.abi.nvml.codes import Code
from tests.abi.nvml.happenings import failing
from tests.abi.nvml.scenario import MIB, Process, Scenario
from tests.abi.scenarios.nodes import h100_56_instances, h100_node
from tests.sources.nvml.conftest import Drive

SETTLED, MINUTE = 30, 60  # seconds
UNTIMED = "nvmlEventSetWait_v2"  # two a second for the whole node, in real time

EVERY_SECOND = {  # on any board
    "nvmlDeviceGetHandleByIndex_v2": 1,
    "nvmlDeviceGetUUID": 1,
    "nvmlDeviceGetMigMode": 1,
    "nvmlGpmSampleGet": 1,
    "nvmlGpmMetricsGet": 1,
    "nvmlDeviceGetFieldValues": 1,  # power, energy, memory temperature
    "nvmlDeviceGetClockInfo": 2,
    "nvmlDeviceGetMemoryInfo_v2": 1,
    "nvmlDeviceGetCurrentClocksEventReasons": 1,
    "nvmlDeviceGetComputeRunningProcesses_v3": 1,
    "nvmlDeviceGetGraphicsRunningProcesses_v3": 1,
    "nvmlDeviceGetMPSComputeRunningProcesses_v3": 1,
}
WHOLE = {"nvmlDeviceGetSamples": 2, "nvmlDeviceGetProcessUtilization": 1}  # what a board in MIG mode does not tell
SLOW = {
    "nvmlDeviceGetTemperature": 1 / 5,
    "nvmlDeviceGetFieldValues": 2 / 10,  # what hardly changes, and the links
    "nvmlDeviceGetCurrPcieLinkGeneration": 1 / 10,
    "nvmlDeviceGetMaxPcieLinkGeneration": 1 / 10,
    "nvmlDeviceGetCurrPcieLinkWidth": 1 / 10,
    "nvmlDeviceGetMaxPcieLinkWidth": 1 / 10,
}
CUT = {**SLOW, "nvmlDeviceGetFieldValues": 1 / 10}  # no links
INSTANCE = {  # of each
    "nvmlDeviceGetMigDeviceHandleByIndex": 1,
    "nvmlDeviceGetUUID": 1,
    "nvmlGpmMigSampleGet": 1,
    "nvmlGpmMetricsGet": 1,
    "nvmlDeviceGetMemoryInfo_v2": 1,
}
NODE = {"nvmlDeviceGetCount_v2": 1}


def _sum(*parts: tuple[int, dict[str, int] | dict[str, float]]) -> dict[str, float]:
    total: dict[str, float] = {}
    for times, part in parts:
        for function, calls in part.items():
            total[function] = total.get(function, 0.0) + times * calls
    return total


def _a_second(driven: Drive, scenario: Scenario, per_second: int) -> dict[str, float]:
    """Calls a second by function, mean of a minute."""
    counted = []
    for seconds in (SETTLED, SETTLED + MINUTE):
        script = f"source = make(); [read(source, i / {per_second}) for i in range({seconds * per_second})]; result = 0"
        counted.append(driven(scenario, script).playing.report().calls)
    before, after = counted
    more = {function: (calls - before.get(function, 0)) / MINUTE for function, calls in after.items()}
    return {function: calls for function, calls in more.items() if calls and function != UNTIMED}


def _at_work(scenario: Scenario) -> Scenario:
    """Each GPU with a process."""
    process = Process(100, "python", memory=1000.0 * MIB, sm_utilization=80.0)
    return replace(scenario, gpus=tuple(replace(gpu, processes=(process,)) for gpu in scenario.gpus))


def test_eight_gpus_once_a_second(driven: Drive) -> None:
    calls = _a_second(driven, _at_work(h100_node()), 1)
    assert calls == pytest.approx(_sum((8, EVERY_SECOND), (8, WHOLE), (8, SLOW), (1, NODE)))
    assert sum(calls.values()) / 8 == pytest.approx(16.9, abs=0.1)


def test_56_instances_once_a_second(driven: Drive) -> None:
    calls = _a_second(driven, _at_work(h100_56_instances()), 1)
    assert calls == pytest.approx(_sum((8, EVERY_SECOND), (8, CUT), (56, INSTANCE), (1, NODE)))
    assert sum(calls.values()) / 8 == pytest.approx(48.8, abs=0.1)


def test_ten_times_a_second_asks_more_often_for_the_measurement_and_the_claim_only(driven: Drive) -> None:
    calls = _a_second(driven, _at_work(h100_node()), 10)
    often = {
        "nvmlGpmSampleGet": 10.0,
        "nvmlGpmMetricsGet": 10.0,
        "nvmlDeviceGetSamples": 12.0,  # six windows a second close in each of two buffers
        "nvmlDeviceGetCount_v2": 10 / 8,
    }
    assert {function: calls.pop(function) / 8 for function in often} == pytest.approx(often)
    once = _sum((1, EVERY_SECOND), (1, WHOLE), (1, SLOW))
    assert calls.keys() == once.keys() - often.keys()
    for function, number in calls.items():
        assert number / 8 <= once[function] / 0.9 + 0.02, function  # looks are 0.9 s apart


def test_ten_times_a_second_with_56_instances(driven: Drive) -> None:
    calls = _a_second(driven, _at_work(h100_56_instances()), 10)
    assert calls.pop("nvmlGpmMigSampleGet") / 56 == pytest.approx(10.0)
    assert calls.pop("nvmlGpmMetricsGet") / 64 == pytest.approx(10.0)
    assert calls.pop("nvmlGpmSampleGet") / 8 == pytest.approx(10.0)
    assert calls.pop("nvmlDeviceGetCount_v2") == pytest.approx(10.0)
    once = _sum((8, EVERY_SECOND), (8, CUT), (56, INSTANCE))
    for function, number in calls.items():
        assert number <= once[function] / 0.9 + 0.2, function


def test_a_driver_without_field_values_costs_the_functions(driven: Drive) -> None:
    """And no more than once each: what it refused is not tried again."""
    refusing = replace(h100_node(1), faults=(failing("nvmlDeviceGetFieldValues", Code.FUNCTION_NOT_FOUND),))
    calls = _a_second(driven, refusing, 1)
    assert calls["nvmlDeviceGetPowerUsage"] == calls["nvmlDeviceGetTotalEnergyConsumption"] == 1.0
    assert calls["nvmlDeviceGetEnforcedPowerLimit"] == pytest.approx(0.1)
    assert "nvmlDeviceGetFieldValues" not in calls
