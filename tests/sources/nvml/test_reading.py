"""What the source reads of healthy GPUs, through NVIDIA's own binding."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.abi.nvml.meeting import h100, one
from tests.abi.nvml.scenario import NvLink, Process, Scenario, steps
from tests.abi.scenarios.nodes import (
    a100_mig_node,
    geforce_node,
    h100_56_instances,
    h100_mig_node,
    h100_node,
    mixed_node,
)
from tests.abi.scenarios.workloads import GEMM, HOST_TO_DEVICE, running
from tests.sources.nvml.conftest import Drive

READS = "source = make(); result = reads(source, 0.0, 1.0, 2.0, 3.0); source.close()"


def test_the_full_set_of_a_hopper_at_work(driven: Drive) -> None:
    found = driven(one(running(h100(), GEMM)), READS)
    *_, last = found.result
    ((uuid, facts),) = last["devices"].items()
    values = {key.removeprefix(f"{uuid} "): value for key, value in last["values"].items()}
    assert facts[1] == "NVIDIA H100 80GB HBM3"
    assert values["busy"] == pytest.approx(1.0)
    assert values["memory_busy"] == pytest.approx(0.40, abs=0.01)
    expected = {
        "graphics_engine": 0.995,
        "sm": 0.98,
        "sm_occupancy": 0.125,
        "tensor": 0.82,
        "dram": 0.31,
        "fp32": 0.015,
    }
    assert {name: values[name] for name in expected} == pytest.approx(expected, rel=1e-3)
    assert values["integer"] == pytest.approx(0.06)
    assert values["tensor_hmma"] == pytest.approx(0.82)
    assert values["pcie_transmit"] == pytest.approx(3 * 2**20)
    assert values["pcie_receive"] == pytest.approx(5 * 2**20)
    assert values["power"] == pytest.approx(665.0)
    assert values["power_limit"] == pytest.approx(700.0)
    assert values["sm_clock"] == pytest.approx(1980e6)
    assert values["memory_clock"] == pytest.approx(2619e6)
    assert values["memory_total"] == pytest.approx(81559 * 2**20, rel=0.01)
    assert values["pcie_link_generation_max"] == 5
    assert values["pcie_link_width_max"] == 16
    assert values["nvlink_links_up"] == 18
    (links,) = last["links"].values()
    assert links == {str(link): "up" for link in range(18)}
    assert values["clock_event:power_cap"] == 0.0
    assert values["processes"] == 0.0
    assert not last["problems"]
    assert found.playing.report().open_samples == 0  # after close
    assert found.playing.report().open_event_sets == 0


def test_energy_is_the_drivers_counter_in_joules(driven: Drive) -> None:
    *_, before, after = driven(one(running(h100(), GEMM)), READS).result
    (key,) = [key for key in after["values"] if key.endswith(" energy")]
    assert after["values"][key] - before["values"][key] == pytest.approx(665.0, rel=0.01)


def test_the_claim_has_the_drivers_own_window(driven: Drive) -> None:
    gpu = h100(utilization=steps((0, 0), (2.5, 100)))
    _, first, second, third = driven(one(gpu), READS).result
    (key,) = [key for key in third["spans"] if key.endswith(" busy")]
    assert key not in first["spans"]  # the window before the first sample is not known
    start, end = third["spans"][key]
    assert start == pytest.approx(second["spans"][key][1])  # windows follow one another
    assert 2.8 <= end <= 3.0  # the newest sample is up to a sixth of a second old
    assert third["values"][key] == pytest.approx((end - 2.5) / (end - start), abs=0.1)


def test_gpm_begins_with_the_second_interval(driven: Drive) -> None:
    zero, one_, two, three = driven(one(h100()), READS).result
    for batch in (zero, one_):
        assert not [key for key in batch["spans"] if key.endswith(" sm")]
    (key,) = [key for key in two["spans"] if key.endswith(" sm")]
    assert two["spans"][key] == [1.0, 2.0]
    assert three["spans"][key] == [2.0, 3.0]


def test_reads_closer_than_gpm_allows_lose_nothing(driven: Drive) -> None:
    times = "0, 1, 2, 2.05, 2.5"
    script = f"source = make(); result = reads(source, {times})"
    *_, two, close, later = driven(one(h100()), script).result
    (key,) = [key for key in two["spans"] if key.endswith(" sm")]
    assert key not in close["spans"]
    assert later["spans"][key] == [2.0, 2.5]


def test_instances_have_a_measurement_and_memory_and_no_claim(driven: Drive) -> None:
    *_, last = driven(h100_mig_node(), READS).result
    boards = {name: facts for name, facts in last["devices"].items() if "/" not in name}
    ((uuid, board),) = boards.items()
    assert board[3] is True
    instances = {name: facts for name, facts in last["devices"].items() if "/" in name}
    profiles = {name.split("/")[1]: facts[2] for name, facts in instances.items()}
    assert profiles == {"2": "3g.40gb", "3": "2g.20gb", "9": "1g.10gb", "10": "1g.10gb"}
    assert all(facts[4].startswith("MIG-") for facts in instances.values())
    assert last["absent"][f"{uuid} busy"] == "not_supported"
    for name in instances:
        assert f"{name} sm" in last["values"]
        assert f"{name} memory_used" in last["values"]
        assert f"{name} busy" not in last["values"]
        assert f"{name} pcie_receive" not in last["values"]
        assert f"{name} power" not in last["values"]
    assert f"{uuid} sm" not in last["values"]
    assert f"{uuid} power" in last["values"]


def test_56_instances_hold_two_samples_each(driven: Drive) -> None:
    script = "source = make(); batches = reads(source, 0, 1, 2, 3); result = len(batches[-1]['devices'])"
    found = driven(h100_56_instances(), script)
    assert found.result == 8 + 56
    assert found.playing.report().open_mig_samples == 2 * 56


def test_gpus_without_gpm_have_the_claim_alone(driven: Drive) -> None:
    for scenario in (geforce_node(), Scenario((mixed_node().gpus[2],))):
        *_, last = driven(scenario, READS).result
        ((uuid, _),) = last["devices"].items()
        assert f"{uuid} busy" in last["values"]
        assert last["absent"][f"{uuid} sm"] == "not_supported"
        assert f"{uuid} sm" not in last["values"]


def test_a_link_that_is_not_up_and_a_gpu_without_nvlink(driven: Drive) -> None:
    *_, last = driven(one(h100(nvlink=NvLink(4, states={2: 0.0}))), READS).result
    ((uuid, links),) = last["links"].items()
    assert links == {"0": "up", "1": "up", "2": "down", "3": "up"}
    assert last["values"][f"{uuid} nvlink_links_up"] == 3
    *_, last = driven(geforce_node(), READS).result
    assert last["links"] is None
    assert {last["absent"][f"{uuid} nvlink_links_up"] for uuid in last["devices"]} == {"not_supported"}


def test_instances_without_gpm(driven: Drive) -> None:
    *_, last = driven(a100_mig_node(), READS).result
    (first, *_) = [name for name in last["devices"] if "/" in name]
    assert last["absent"][f"{first} sm"] == "not_supported"
    assert f"{first} memory_total" in last["values"]


def test_a_mixed_node(driven: Drive) -> None:
    *_, last = driven(mixed_node(), READS).result
    measured = {name.split("/")[0] for name in last["devices"] if f"{name} sm" in last["values"]}
    assert len(measured) == 2  # the H100 and the instances of the other one
    assert len([name for name in last["devices"] if "/" not in name]) == 5


def test_processes_and_their_share(driven: Drive) -> None:
    processes = (
        Process(10, "python", memory=2.0**30, sm_utilization=60.0),
        Process(11, "python", sm_utilization=1980.0),
    )
    *_, last = driven(one(h100(processes=processes)), READS).result
    (first, second) = last["processes"]
    assert first[1:3] == [10, 2.0**30]
    assert first[3] == pytest.approx(0.6)
    assert second[1] == 11
    assert second[2] is None  # the driver does not tell
    assert second[3] is None  # above 100: dropped (field case 7)
    (key,) = [key for key in last["values"] if key.endswith(" processes")]
    assert last["values"][key] == 2.0


def test_memory_of_a_mig_process_belongs_to_its_instance(driven: Drive) -> None:
    node = h100_mig_node()
    board = replace(node.gpus[0], processes=(Process(20, memory=5.0, instance=2, compute=0),))
    *_, last = driven(replace(node, gpus=(board,)), READS).result
    assert [entry[0].split("/")[1] for entry in last["processes"]] == ["2"]
    (key,) = [key for key in last["values"] if key.endswith("/2 processes")]
    assert last["values"][key] == 1.0


def test_host_to_device_copies_are_received_bytes(driven: Drive) -> None:
    *_, last = driven(one(running(h100(), HOST_TO_DEVICE)), READS).result
    (key,) = [key for key in last["values"] if key.endswith(" pcie_receive")]
    assert last["values"][key] == pytest.approx(50_000 * 2**20)


def test_eight_gpus(driven: Drive) -> None:
    *_, last = driven(h100_node(), READS).result
    assert [facts[0] for facts in last["devices"].values()] == list("01234567")


def test_more_processes_than_there_is_room_for(driven: Drive) -> None:
    processes = tuple(Process(pid, "python", memory=2.0**20, sm_utilization=1.0) for pid in range(100, 150))
    found = driven(one(h100(processes=processes)), "source = make(); result = reads(source, *range(10))")
    last = found.result[-1]["processes"]
    assert [entry[1:] for entry in last] == [[pid, 2.0**20, pytest.approx(0.01)] for pid in range(100, 150)]
    report = found.playing.report()
    for function in ("nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetProcessUtilization"):
        assert report.called(function) == 11, function  # the room has grown once
