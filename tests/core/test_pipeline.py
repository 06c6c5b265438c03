"""From batches to Snapshots: counters, gauges, absence, recovery."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.clock import VirtualClock
from exporter.core.pipeline import FORGET_AFTER, Pipeline
from exporter.core.snapshot import EntityView
from exporter.fields import INT64_BLANK, PROFILING
from exporter.model import Absence, Batch, Entity, Problem, ProcessUse, Reading
from exporter.trust import ProfilingState
from tests.core.building import FULL, GPU, batch, device, readings

LOAD: dict[str, float | Absence] = {
    "busy": 0.9,
    "graphics_engine": 0.9,
    "sm": 0.5,
    "sm_occupancy": 0.2,
    "tensor": 0.3,
    "fp32": 0.1,
    "dram": 0.4,
    "power": 300.0,
    "processes": 1.0,
}


def run(pipeline: Pipeline, clock: VirtualClock, windows: list[dict[str, float | Absence]]) -> EntityView:
    """One batch a second; the view after the last."""
    for values in windows:
        start = clock.monotonic()
        clock.advance(1.0)
        pipeline.absorb(batch(start, clock.monotonic(), values))
        snapshot = pipeline.publish()
    return snapshot.entities[0]


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def pipeline(clock: VirtualClock) -> Pipeline:
    return Pipeline(clock, 1.0)


def test_a_healthy_minute(pipeline: Pipeline, clock: VirtualClock) -> None:
    view = run(pipeline, clock, [LOAD] * 60)
    assert view.means["busy"] == 0.9
    assert view.totals.seconds["busy"] == pytest.approx(54.0)
    assert view.totals.observed["busy"] == view.totals.observed["parts"] == pytest.approx(60.0)
    assert view.totals.observed["measurement"] == pytest.approx(60.0)
    assert view.totals.parts == pytest.approx({"working": 24.0, "stalled": 6.0, "hollow": 24.0, "idle": 6.0})
    assert view.totals.limiters == pytest.approx({"dram": 60.0})
    assert view.totals.amounts["energy"] == pytest.approx(59 * 300.0)
    assert view.totals.buckets[5] == 60
    assert view.profiling is ProfilingState.OK
    assert view.last_sample == pytest.approx(clock.timestamp())


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("busy", 19.80, "out_of_range"),  # field case 7: the SM clock of the neighbouring field, in percent
        ("sm", 1.294, "out_of_range"),  # field case 8
        ("dram", 140737488355328.0, "out_of_range"),  # a blank that came through unmarked
        ("busy", INT64_BLANK + 2.0, "out_of_range"),
        ("sm", -0.01, "out_of_range"),
        ("tensor", math.nan, "not_a_number"),
        ("tensor", math.inf, "not_a_number"),
    ],
)
def test_impossible_values_are_absent_and_counted(
    pipeline: Pipeline, clock: VirtualClock, field: str, value: float, reason: str
) -> None:
    view = run(pipeline, clock, [LOAD, {**LOAD, field: value}])
    assert field not in view.means
    assert view.rejected == {(field, reason): 1}
    assert view.totals.observed[field] == pytest.approx(1.0)


def test_rounding_counts_as_one(pipeline: Pipeline, clock: VirtualClock) -> None:
    view = run(pipeline, clock, [{**LOAD, "sm": 1.004, "busy": 1.0}])
    assert view.means["sm"] == 1.0
    assert not view.rejected


def test_a_failed_source_takes_the_gauges_and_keeps_the_counters(pipeline: Pipeline, clock: VirtualClock) -> None:
    before = run(pipeline, clock, [LOAD] * 5)
    pipeline.failed("test", Problem("source test cannot be read", "connection refused", ""))
    snapshot = pipeline.publish()
    lost = snapshot.entities[0]
    assert not lost.means
    assert not lost.instants
    assert lost.honest is None
    assert lost.totals == before.totals
    assert lost.profiling is ProfilingState.STALE
    assert [p.why for p in snapshot.problems] == ["connection refused"]
    again = run(pipeline, clock, [LOAD])
    assert again.totals.seconds["busy"] == pytest.approx(0.9 * 6)
    assert again.profiling is ProfilingState.OK
    assert not pipeline.publish().problems


def test_silence_makes_gauges_absent_without_a_failure(pipeline: Pipeline, clock: VirtualClock) -> None:
    run(pipeline, clock, [LOAD])
    clock.advance(10.0)
    view = pipeline.publish().entities[0]
    assert not view.means
    assert view.honest is None
    assert view.profiling is ProfilingState.STALE
    assert view.totals.seconds["busy"] == pytest.approx(0.9)


def test_a_gpu_that_falls_off_the_bus(pipeline: Pipeline, clock: VirtualClock) -> None:
    other = device(entity=Entity("GPU-2"))
    both = Batch("test", 1.0, (device(), other), [*readings(0, 1, LOAD), *readings(0, 1, LOAD, other.entity)])
    clock.advance(1.0)
    pipeline.absorb(both)
    clock.advance(1.0)
    pipeline.absorb(Batch("test", 2.0, (device(),), readings(1, 2, LOAD)))
    snapshot = pipeline.publish()
    lost = next(view for view in snapshot.entities if view.device.entity == other.entity)
    assert (snapshot.expected_gpus, snapshot.present_gpus) == (2, 1)
    assert not lost.present
    assert not lost.means
    assert lost.totals.seconds["busy"] == pytest.approx(0.9)
    clock.advance(FORGET_AFTER)
    pipeline.absorb(Batch("test", clock.monotonic(), (device(),), []))
    assert len(pipeline.publish().entities) == 1


def test_mig_board_has_no_claim(pipeline: Pipeline, clock: VirtualClock) -> None:
    """Field cases 2, 35: whatever the driver returns for it, absent and never 0."""
    clock.advance(1.0)
    pipeline.absorb(batch(0.0, 1.0, {"busy": 0.0, "power": 400.0}, device(mig_enabled=True)))
    view = pipeline.publish().entities[0]
    assert "busy" not in view.means
    assert "busy" not in view.totals.seconds
    assert view.absences["busy"] is Absence.NOT_SUPPORTED
    assert view.instants["power"] == 400.0


def test_a_field_that_is_not_supported_leaves_the_formula(pipeline: Pipeline, clock: VirtualClock) -> None:
    view = run(pipeline, clock, [{**LOAD, "dram": Absence.NOT_SUPPORTED}])
    assert view.honest is not None
    assert view.honest.utilization == 0.3


def test_a_field_that_is_blank_for_a_moment_does_not_change_the_formula(
    pipeline: Pipeline, clock: VirtualClock
) -> None:
    view = run(pipeline, clock, [LOAD, {**LOAD, "dram": Absence.BLANK}])
    assert view.totals.observed["parts"] == pytest.approx(1.0)
    assert view.totals.parts["working"] == pytest.approx(0.4)


def test_scattered_fields_are_never_joined(pipeline: Pipeline, clock: VirtualClock) -> None:
    """Field case 23: another field is blank in each sample."""
    fields = ["sm", "tensor", "dram", "fp32"]
    windows = [{**LOAD, fields[k % 4]: Absence.BLANK} for k in range(40)]
    view = run(pipeline, clock, windows)
    assert "parts" not in view.totals.observed
    assert view.totals.observed["sm"] == pytest.approx(30.0)
    assert view.totals.seconds["sm"] == pytest.approx(15.0)


def test_stuck_at_zero_is_absent_not_a_divergence(pipeline: Pipeline, clock: VirtualClock) -> None:
    """Field cases 18, 19: utilization 100 %, every profiling field exactly 0 after Xid 31."""
    zero = {**LOAD, **{field: 0.0 for field in PROFILING if field in LOAD}, "busy": 1.0}
    healthy = run(pipeline, clock, [LOAD] * 3)
    stuck = run(pipeline, clock, [zero] * 20)
    assert stuck.profiling is ProfilingState.STUCK_AT_ZERO
    assert "sm" not in stuck.means
    assert stuck.honest is None
    assert stuck.totals.observed["sm"] == healthy.totals.observed["sm"] + 4  # the samples before the verdict
    assert stuck.totals.observed["busy"] == pytest.approx(23.0)
    assert stuck.rejected[("sm", "stuck_at_zero")] == 16
    idle = run(pipeline, clock, [{**zero, "busy": 0.0}])
    assert idle.profiling is ProfilingState.STUCK_AT_ZERO  # an idle claim proves nothing
    assert run(pipeline, clock, [LOAD]).profiling is ProfilingState.OK


def test_an_idle_gpu_is_not_stuck(pipeline: Pipeline, clock: VirtualClock) -> None:
    idle: dict[str, float | Absence] = dict.fromkeys(FULL, 0.0)
    view = run(pipeline, clock, [idle] * 50)
    assert view.profiling is ProfilingState.OK
    assert view.totals.parts["idle"] == pytest.approx(50.0)


def test_frozen_profiling_is_noticed_by_what_moves(pipeline: Pipeline, clock: VirtualClock) -> None:
    moving = [{**LOAD, "power": 300.0 + k % 7} for k in range(130)]
    assert run(pipeline, clock, moving).profiling is ProfilingState.FROZEN
    still = Pipeline(clock, 1.0)
    assert run(still, clock, [LOAD] * 300).profiling is ProfilingState.OK  # nothing moves: no contradiction


@pytest.mark.parametrize(
    ("absence", "state"),
    [
        (Absence.BLANK, ProfilingState.PAUSED),
        (Absence.PAUSED, ProfilingState.PAUSED),
        (Absence.LOCKED, ProfilingState.LOCKED_BY_OTHER),
        (Absence.NOT_PERMITTED, ProfilingState.NOT_PERMITTED),
        (Absence.NOT_SUPPORTED, ProfilingState.UNSUPPORTED),
        (Absence.NO_DATA, ProfilingState.STALE),
    ],
)
def test_absence_for_long_is_a_state(
    pipeline: Pipeline, clock: VirtualClock, absence: Absence, state: ProfilingState
) -> None:
    gone = {field: absence if field in PROFILING else value for field, value in LOAD.items()}
    view = run(pipeline, clock, [gone] * 4)
    assert view.profiling is state
    assert not set(view.means) & set(PROFILING)
    assert view.totals.seconds["busy"] == pytest.approx(3.6)


def test_stalls_need_two_quiet_samples_and_a_process(pipeline: Pipeline, clock: VirtualClock) -> None:
    quiet = {**LOAD, "busy": 0.0, "sm": 0.0, "tensor": 0.0, "dram": 0.0, "fp32": 0.0}
    view = run(pipeline, clock, [LOAD, quiet, LOAD, quiet, quiet, quiet, LOAD, quiet, quiet])
    assert view.totals.stalls == 2
    assert view.totals.stall_seconds == pytest.approx(5.0)
    empty = run(pipeline, clock, [LOAD, *[{**quiet, "processes": 0.0}] * 5])
    assert empty.totals.stalls == 2


def test_driver_counters_never_go_back(pipeline: Pipeline, clock: VirtualClock) -> None:
    energy = [1000.0, 1500.0, 100.0, 250.0]
    listed = device(FULL | {"energy"})
    for k, value in enumerate(energy):
        clock.advance(1.0)
        pipeline.absorb(batch(k, k + 1, {**LOAD, "energy": value}, listed))
    view = pipeline.publish().entities[0]
    assert view.totals.amounts["energy"] == pytest.approx(650.0)
    assert view.rejected[("energy", "counter_reset")] == 1


def test_time_is_never_booked_twice(pipeline: Pipeline, clock: VirtualClock) -> None:
    clock.advance(3.0)
    pipeline.absorb(batch(0.0, 2.0, LOAD))
    pipeline.absorb(batch(1.0, 3.0, LOAD))
    pipeline.absorb(batch(1.0, 2.5, LOAD))
    view = pipeline.publish().entities[0]
    assert view.totals.observed["busy"] == pytest.approx(3.0)
    assert view.totals.observed["parts"] == pytest.approx(3.0)


def test_two_sources_of_one_gpu_meet(pipeline: Pipeline, clock: VirtualClock) -> None:
    claim, measured = device(frozenset({"busy"})), device(frozenset({"sm", "dram"}))
    pipeline.absorb(batch(0.0, 0.0, {}, claim, "nvml"))  # sources announce what they will deliver at their first read
    pipeline.absorb(batch(0.0, 0.0, {}, measured, "dcgm"))
    for k in range(10):
        clock.advance(1.0)
        pipeline.absorb(batch(k + 0.03, k + 1.03, {"busy": 0.8}, claim, "nvml"))
        pipeline.absorb(batch(k, k + 1.0, {"sm": 0.4, "dram": 0.2}, measured, "dcgm"))
    view = pipeline.publish().entities[0]
    assert view.totals.observed["parts"] == pytest.approx(9.97)
    assert view.totals.parts["hollow"] == pytest.approx(9.97 * 0.4)


steps = st.lists(
    st.tuples(
        st.floats(0.05, 3.0),
        st.fixed_dictionaries({f: st.one_of(st.floats(0.0, 1.0), st.none()) for f in ("busy", "sm", "tensor", "dram")}),
        st.booleans(),
    ),
    min_size=1,
    max_size=25,
)


@given(steps)
def test_parts_equal_their_denominator_and_counters_only_grow(
    steps: list[tuple[float, dict[str, float | None], bool]],
) -> None:
    clock = VirtualClock()
    pipeline = Pipeline(clock, 1.0)
    listed = device(frozenset({"busy", "sm", "tensor", "dram"}))
    before: dict[str, float] = {}
    for seconds, values, fails in steps:
        start = clock.monotonic()
        clock.advance(seconds)
        if fails:
            pipeline.failed("test", Problem("x", "y", ""))
        else:
            made = {field: Absence.BLANK if value is None else value for field, value in values.items()}
            pipeline.absorb(batch(start, clock.monotonic(), made, listed))
        for view in pipeline.publish().entities:
            totals = view.totals
            parts = totals.observed.get("parts", 0.0)
            assert math.fsum(totals.parts.values()) == pytest.approx(parts, rel=1e-9, abs=1e-9)
            now = {f"s{k}": v for k, v in totals.seconds.items()} | {f"p{k}": v for k, v in totals.parts.items()}
            now |= {f"o{k}": v for k, v in totals.observed.items()}
            assert all(now[key] >= value for key, value in before.items())
            before = now


@given(seed=st.integers(0, 2**32), share=st.floats(0.1, 0.9))
def test_the_ratio_to_the_denominator_is_unbiased_when_a_field_drops_out(seed: int, share: float) -> None:
    """A constant field that is blank at random: seconds / observed stays its value exactly, whatever was lost."""
    chance = random.Random(seed)
    clock = VirtualClock()
    pipeline = Pipeline(clock, 1.0)
    windows = [{**LOAD, "sm": Absence.BLANK if chance.random() < share else 0.37} for _ in range(50)]
    windows.append({**LOAD, "sm": 0.37})
    totals = run(pipeline, clock, windows).totals
    assert totals.seconds["sm"] / totals.observed["sm"] == pytest.approx(0.37)
    assert totals.seconds["busy"] / totals.observed["busy"] == pytest.approx(0.9)
    assert totals.parts["stalled"] == pytest.approx(0.0)
    assert totals.parts["working"] / totals.observed["parts"] == pytest.approx(0.37)


def test_readings_of_unlisted_entities_and_late_finals(pipeline: Pipeline, clock: VirtualClock) -> None:
    clock.advance(1.0)
    stranger = Reading(Entity("GPU-x"), "busy", 1.0, 0.5, 0.0)
    pipeline.absorb(Batch("test", 1.0, (device(),), [*readings(0, 1, LOAD), stranger]))
    pipeline.absorb(Batch("test", 1.0, (device(),), [], final=True))
    clock.advance(100.0)
    snapshot = pipeline.publish()
    assert len(snapshot.entities) == 1
    assert snapshot.entities[0].means["busy"] == 0.9  # time has ended for it: the last window stays the last
    assert snapshot.entities[0].device.entity == GPU


def test_processes_that_are_not_told_any_more_are_not_carried_on() -> None:
    clock = VirtualClock()
    pipeline = Pipeline(clock, 1.0)
    told = ProcessUse(GPU, 7, 1.0)
    pipeline.absorb(replace(batch(0, 1, {"busy": 0.5}), processes=(told,)))
    assert pipeline.publish().processes == (told,)
    pipeline.absorb(batch(1, 2, {"busy": 0.5}))
    assert pipeline.publish().processes is None
