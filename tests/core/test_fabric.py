"""The account of links, switches and CPUs, and what is served of it."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from exporter.clock import VirtualClock
from exporter.core.fabric import FabricAccount, PartView
from exporter.core.pipeline import Pipeline
from exporter.core.snapshot import Snapshot
from exporter.metrics import fabric
from exporter.model import Batch, Device, Entity, Fabric, LinkState, Part, PartKind, PartReading, Problem

SWITCH, CPU = Part(PartKind.NVSWITCH, 3), Part(PartKind.CPU, 0)
GPU = Entity("GPU-1")


def look(end: float, *readings: PartReading, parts: tuple[Part, ...] = (SWITCH, CPU)) -> Fabric:
    return Fabric(end, 5.0, parts, readings)


def busy(start: float, end: float, value: float) -> PartReading:
    return PartReading(CPU, "cpu_utilization", end, value, start)


def sxid(end: float, code: str) -> PartReading:
    return PartReading(SWITCH, "nvswitch_fatal_sxid", end, 1.0, label=code)


def view_of(account: FabricAccount, part: Part, now: float) -> PartView:
    (found,) = [view for view in account.view(now).parts if (view.kind, view.number) == (part.kind.value, part.number)]
    return found


def test_ratios_integrate_and_no_time_counts_twice() -> None:
    account = FabricAccount()
    account.absorb("dcgm", look(5.0, busy(0.0, 5.0, 0.5)))
    account.absorb("dcgm", look(10.0, busy(4.0, 10.0, 0.25)))
    account.absorb("dcgm", look(15.0, busy(9.0, 10.0, 0.9)))
    view = view_of(account, CPU, 15.0)
    assert view.observed["cpu_utilization"] == pytest.approx(10.0)
    assert view.seconds["cpu_utilization"] == pytest.approx(0.5 * 5 + 0.25 * 5)


def test_what_is_out_of_range_is_refused_and_counted() -> None:
    account = FabricAccount()
    hot = PartReading(SWITCH, "nvswitch_temperature", 5.0, 2147483632.0)
    rejected = account.absorb("dcgm", look(5.0, hot, busy(0.0, 5.0, 1.3), busy(0.0, 5.0, 1.004)))
    assert rejected == {("nvswitch_temperature", "out_of_range"): 1, ("cpu_utilization", "out_of_range"): 1}
    assert view_of(account, SWITCH, 5.0).current == {}
    assert view_of(account, CPU, 5.0).current == {("cpu_utilization", ""): 1.0}


def test_an_old_look_is_not_carried_on_but_counters_are() -> None:
    account = FabricAccount()
    account.absorb("dcgm", look(5.0, sxid(5.0, "20034"), PartReading(SWITCH, "nvswitch_temperature", 5.0, 48.0)))
    assert view_of(account, SWITCH, 20.0).current == {("nvswitch_temperature", ""): 48.0}
    late = view_of(account, SWITCH, 20.1)
    assert late.current == {}
    assert late.events == {("nvswitch_fatal_sxid", "20034"): 1}
    account.absorb("dcgm", look(25.0, PartReading(SWITCH, "nvswitch_temperature", 25.0, 50.0)))
    account.failed("dcgm")
    gone = view_of(account, SWITCH, 25.0)
    assert (gone.current, gone.events) == ({}, {("nvswitch_fatal_sxid", "20034"): 1})


def snapshot_of(*batches: Batch, failed: bool = False) -> Snapshot:
    clock = VirtualClock()
    pipeline = Pipeline(clock, 1.0)
    for batch in batches:
        clock.advance(batch.end - clock.monotonic())
        pipeline.absorb(batch)
    if failed:
        pipeline.failed("dcgm", Problem("dcgm", "gone", ""))
    return pipeline.publish()


def lines(snapshot: Snapshot) -> dict[str, float]:
    return {f"{s.family.series_name}{{{s.labels}}}": s.value for s in fabric.GROUP.collect(snapshot)}


def batch(end: float, seen: Fabric) -> Batch:
    return Batch("dcgm", end, [Device(GPU, "0")], [], fabric=seen)


def test_what_is_served() -> None:
    links: Mapping[Entity | Part, Mapping[int, LinkState]] = {
        GPU: {0: LinkState.UP, 1: LinkState.DOWN, 2: LinkState.DISABLED},
        SWITCH: {0: LinkState.UP, 1: LinkState.UP, 2: LinkState.DISABLED},
    }
    rail = PartReading(SWITCH, "nvswitch_power", 5.0, 40.0, label="vdd")
    seen = Fabric(5.0, 5.0, (SWITCH, CPU), (rail, sxid(5.0, "20034"), busy(0.0, 4.0, 0.5)), links)
    found = lines(snapshot_of(batch(5.0, seen)))
    assert found == {
        'honest_gpu_nvlink_link_up{gpu="0",uuid="GPU-1",link="0"}': 1.0,
        'honest_gpu_nvlink_link_up{gpu="0",uuid="GPU-1",link="1"}': 0.0,
        'honest_gpu_nvswitch_links{nvswitch="3",state="up"}': 2,
        'honest_gpu_nvswitch_links{nvswitch="3",state="down"}': 0,
        'honest_gpu_nvswitch_links{nvswitch="3",state="disabled"}': 1,
        'honest_gpu_nvswitch_power_watts{nvswitch="3",rail="vdd"}': 40.0,
        'honest_gpu_nvswitch_sxid_errors_total{nvswitch="3",severity="fatal",sxid="20034"}': 1,
        'honest_gpu_cpu_utilization_ratio{cpu="0"}': 0.5,
        'honest_gpu_cpu_busy_seconds_total{cpu="0"}': 2.0,
        'honest_gpu_cpu_observed_seconds_total{cpu="0"}': 4.0,
    }


def test_after_a_failure_only_counters_are_served() -> None:
    links: Mapping[Entity | Part, Mapping[int, LinkState]] = {GPU: {0: LinkState.UP}, SWITCH: {0: LinkState.UP}}
    seen = Fabric(5.0, 5.0, (SWITCH,), (sxid(5.0, "1"), busy(0.0, 5.0, 1.0)), links)
    assert set(lines(snapshot_of(batch(5.0, seen), failed=True))) == {
        'honest_gpu_nvswitch_sxid_errors_total{nvswitch="3",severity="fatal",sxid="1"}',
        'honest_gpu_cpu_busy_seconds_total{cpu="0"}',
        'honest_gpu_cpu_observed_seconds_total{cpu="0"}',
    }


def test_a_source_that_sees_nothing_of_it_serves_nothing() -> None:
    assert lines(snapshot_of(Batch("nvml", 5.0, [Device(GPU, "0")], []))) == {}
