"""The series for jobstats where something is not known, and the names of the exporter that they stand in for."""

from __future__ import annotations

from dataclasses import replace

from exporter.attribution.holdings import Holding, Sharing, Workload
from exporter.core.snapshot import Snapshot, SourceView
from exporter.metrics import jobstats
from exporter.metrics.family import Type
from exporter.model import Device, Entity
from tests.core.building import FULL
from tests.metrics.whose import BOARD, H100, SLICE, WHOLE, Told, Whose, series

# gauges that plazonic/nvidia_gpu_prometheus_exporter (main.go at 73b8cc4) defines after its prefix nvidia_gpu_
THEIRS = {
    "num_devices",
    "memory_used_bytes",
    "memory_total_bytes",
    "duty_cycle",
    "power_usage_milliwatts",
    "temperature_celsius",
    "fanspeed_percent",
    "clock",
    "clock_event_reason",
    "ecc_errors",
    "last_error",
    "jobId",
    "jobUid",
    "graphics_util_percent",
    "sm_util_percent",
    "sm_occupancy_percent",
    "integer_util",
    "any_tensor_util_percent",
    "dram_bw_util_percent",
    "fp64_util_percent",
    "fp32_util_percent",
    "fp16_util_percent",
    "pcie_tx_per_sec",
    "pcie_rx_per_sec",
    "nvlink_total_rx_per_sec",
    "nvlink_total_tx_per_sec",
}
NOT_SERVED = {"fanspeed_percent", "clock_event_reason", "ecc_errors", "last_error"}  # docs/bare-metal.md says why
GPU = f'ordinal="0",minor_number="2",uuid="GPU-1",name="{H100}"'
OF_SLICE = f'ordinal="1",uuid="MIG-a",name="{H100} MIG 3g.40gb",GPU_I_ID="7"'
DEVICES = (
    Device(WHOLE, "0", FULL | {"memory_used", "temperature"}, model=H100, minor="2"),
    Device(BOARD, "1", FULL - {"busy"} | {"temperature"}, model=H100, mig_enabled=True),
    Device(SLICE, "1", frozenset({"sm"}), model=H100, mig_profile="3g.40gb", mig_uuid="MIG-a"),
)


def holding(workload: Workload, uid: int | None = None, entity: Entity = WHOLE) -> Holding:
    return Holding(entity, workload, Sharing.EXCLUSIVE, uid=uid)


def node(*holdings: Holding) -> Snapshot:
    """The third window, in which the sources have been read."""
    whose = Whose(Told(holdings), devices=DEVICES)
    last = [whose.window() for _ in range(3)][-1]
    return replace(last, sources=(SourceView("test", up=True, reads=3, failures=0, seconds=0.0),))


def told(snapshot: Snapshot) -> dict[str, float]:
    return series(snapshot, jobstats.GROUP)


def test_names_and_types_are_theirs() -> None:
    served = jobstats.GROUP.families
    assert {family.name for family in served} == THEIRS - NOT_SERVED
    assert {family.type for family in served} == {Type.GAUGE}
    assert all(family.namespace == "nvidia_gpu_" for family in served)


def test_without_attribution_there_are_devices_and_no_jobs() -> None:
    found = told(replace(node(holding(Workload(job_id="7"), 1001)), attribution=None))
    assert found[f"nvidia_gpu_duty_cycle{{{GPU}}}"] == 50.0
    assert not any("jobid" in each or "jobId" in each for each in found)


def test_what_is_not_known_is_absent() -> None:
    found = told(node())
    assert f"nvidia_gpu_memory_used_bytes{{{GPU}}}" in found
    assert not any(
        each.startswith(("nvidia_gpu_memory_total", "nvidia_gpu_pcie", "nvidia_gpu_clock")) for each in found
    )


def test_a_device_that_is_gone_has_no_series() -> None:
    snapshot = node(holding(Workload(job_id="7"), 1001))
    gone = replace(snapshot, entities=tuple(replace(view, present=False) for view in snapshot.entities))
    assert told(gone) == {"nvidia_gpu_num_devices{}": 2.0}


def test_the_number_of_gpus_is_not_known_while_no_source_answers() -> None:
    snapshot = node()
    down = replace(snapshot, sources=tuple(replace(source, up=False) for source in snapshot.sources))
    assert "nvidia_gpu_num_devices{}" in told(snapshot)
    assert "nvidia_gpu_num_devices{}" not in told(down)


def test_mig_shares_the_temperature_but_neither_the_power_nor_the_claim() -> None:
    found = told(node(holding(Workload(job_id="7"), 1001, SLICE)))
    of_job = {each.partition("{")[0]: value for each, value in found.items() if 'jobid="7"' in each}
    assert of_job == {
        "nvidia_gpu_sm_util_percent": 0.5,
        "nvidia_gpu_temperature_celsius": 0.5,
        "nvidia_gpu_jobId": 7,
        "nvidia_gpu_jobUid": 1001,
    }
    assert f'nvidia_gpu_sm_util_percent{{{OF_SLICE},jobid="7",userid="1001"}}' in found


def test_a_job_id_that_is_no_number_is_a_label_only() -> None:
    found = told(node(holding(Workload(job_id="s5K1KKYAYG5D00"))))
    assert f'nvidia_gpu_duty_cycle{{{GPU},jobid="s5K1KKYAYG5D00"}}' in found
    assert not any(each.startswith("nvidia_gpu_job") for each in found)


def test_one_job_told_twice_is_one_series() -> None:
    found = told(node(holding(Workload(job_id="7")), holding(Workload(job_id="7", user="ada"), 1001)))
    assert [each for each in found if "duty_cycle" in each] == [
        f'nvidia_gpu_duty_cycle{{{GPU},jobid="7",userid="1001"}}'
    ]


def test_a_pod_is_no_job() -> None:
    found = told(node(holding(Workload(namespace="ml", pod="train-0", container="main"))))
    assert f"nvidia_gpu_duty_cycle{{{GPU}}}" in found
    assert not any("jobid" in each for each in found)


def test_beside_a_job_others_add_no_series() -> None:
    found = told(node(holding(Workload(user="eve")), holding(Workload(job_id="7"), 1001)))
    assert [each for each in found if "duty_cycle" in each] == [
        f'nvidia_gpu_duty_cycle{{{GPU},jobid="7",userid="1001"}}'
    ]
