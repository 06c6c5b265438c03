"""Timelines played as if they were GPUs: windows, turns, ends, levels, energy."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.fields import FIELDS
from exporter.model import Absence, Batch, Device, Entity, Reading
from exporter.sources.playback import TimelineSource
from exporter.sources.timeline import Copy, Kernel, StepFunction, Timeline, build

GPU = Entity("GPU-00000000-0000-0000-0000-000000000001")
OTHER = Entity("GPU-00000000-0000-0000-0000-000000000002")
KERNELS = (Kernel(1.0, 2.0, 0.5, 0.25, pipes={"dram": 0.1}), Kernel(4.0, 4.5, 1.0, 0.5))


def steps(duration: float, *levels: tuple[float, float]) -> StepFunction:
    """(time, value) pairs; the first at 0."""
    return StepFunction(array("d", [t for t, _ in levels]), array("d", [v for _, v in levels]), duration)


def played(timeline: Timeline, *, loop: bool = False, **more: Any) -> TimelineSource:
    return TimelineSource("test", [(Device(GPU, "0"), timeline)], loop=loop, **more)


def values(batch: Batch, entity: Entity = GPU) -> dict[str, float | None]:
    """By field, with the label where there is one."""
    own = [r for r in batch.readings if r.entity == entity]
    made = {f"{r.field}:{r.label}" if r.label else r.field: r.value for r in own}
    assert len(made) == len(own)
    return made


def intervals(batch: Batch) -> set[tuple[float | None, float]]:
    return {(r.start, r.end) for r in batch.readings if r.start is not None}


def test_the_first_read_lists_the_devices_and_has_no_window() -> None:
    source = played(build(KERNELS, duration=5.0))
    batch = source.read(100.0)
    assert (batch.source, batch.end, batch.final) == ("test", 100.0, False)
    assert not batch.readings
    (device,) = batch.devices
    assert device.entity == GPU
    assert device.fields == {"busy", "sm", "sm_occupancy", "dram", "collective"}


def test_windows_follow_one_another_without_gap() -> None:
    source = played(build(KERNELS, duration=5.0))
    source.read(100.0)
    first, second = source.read(101.5), source.read(104.5)
    assert intervals(first) == {(100.0, 101.5)}
    assert intervals(second) == {(101.5, 104.5)}
    assert values(first) == pytest.approx(
        {"busy": 0.5 / 1.5, "sm": 0.25 / 1.5, "sm_occupancy": 0.125 / 1.5, "dram": 0.05 / 1.5, "collective": 0.0}
    )
    assert values(second)["busy"] == pytest.approx(1.0 / 3.0)
    assert values(second)["sm"] == pytest.approx(0.75 / 3.0)


def test_rates_are_bytes_per_second_of_the_window() -> None:
    source = played(build((), [Copy(0.0, 1.0, 8e9, "host_to_device"), Copy(0.5, 1.0, 1e9, "device_to_host")]))
    source.read(0.0)
    made = values(source.read(0.5))
    assert made["pcie_receive"] == pytest.approx(8e9)
    assert made["pcie_transmit"] == 0.0
    assert values(source.read(1.0))["pcie_transmit"] == pytest.approx(2e9)


def test_a_second_read_at_the_same_time_brings_nothing() -> None:
    source = played(build(KERNELS, duration=5.0))
    source.read(0.0)
    source.read(1.0)
    batch = source.read(1.0)
    assert (batch.end, list(batch.readings), batch.final) == (1.0, [], False)


def test_once_ends_with_the_pass() -> None:
    source = played(build(KERNELS, duration=5.0))
    source.read(10.0)
    source.read(14.0)
    last = source.read(17.0)  # two seconds late: the window ends with the pass
    assert intervals(last) == {(14.0, 15.0)}
    assert values(last)["busy"] == pytest.approx(0.5)
    assert (last.end, last.final) == (15.0, False)
    for now in (18.0, 19.0):
        after = source.read(now)
        assert (after.end, list(after.readings), after.final) == (15.0, [], True)
        assert [device.entity for device in after.devices] == [GPU]


def test_a_length_of_several_passes() -> None:
    source = played(build(KERNELS, duration=5.0), length=12.0)
    source.read(0.0)
    assert values(source.read(11.0))["busy"] == pytest.approx(3.0 / 11.0)
    assert intervals(source.read(20.0)) == {(11.0, 12.0)}
    assert source.read(21.0).final


def test_looping_never_ends() -> None:
    source = played(build(KERNELS, duration=5.0), loop=True, length=1.0)
    source.read(0.0)
    assert values(source.read(5.0))["busy"] == pytest.approx(1.5 / 5.0)
    window = source.read(13.0)  # one whole pass and three seconds of the next
    assert values(window)["busy"] == pytest.approx(2.5 / 8.0)
    assert values(source.read(5e6))["busy"] == pytest.approx(0.3, rel=1e-5)
    assert not source.read(5e6 + 1).final


def test_a_window_across_a_turn_has_both_ends() -> None:
    source = played(build([Kernel(0.0, 0.5, 1.0), Kernel(4.0, 5.0, 0.5)], duration=5.0), loop=True)
    source.read(0.0)
    source.read(4.5)
    made = values(source.read(5.25))
    assert made["busy"] == pytest.approx(1.0)
    assert made["sm"] == pytest.approx((0.25 + 0.25) / 0.75)


@given(
    duration=st.floats(0.01, 100.0),
    windows=st.lists(st.floats(0.001, 300.0), min_size=1, max_size=30),
    origin=st.floats(0.0, 1e5),
    at_turns=st.booleans(),
)
def test_every_moment_is_played_exactly_once(
    duration: float, windows: list[float], origin: float, at_turns: bool
) -> None:
    """Over any windows, and with windows that are whole passes: the integral of 1 is the time that has passed."""
    source = played(build([Kernel(0.0, duration, 1.0)], duration=duration), loop=True)
    source.read(origin)
    now = total = 0.0
    for window in windows:
        now += duration if at_turns else window
        for reading in source.read(origin + now).readings:
            if reading.field == "busy":
                assert reading.value is not None
                assert reading.start is not None
                total += reading.value * (reading.end - reading.start)
    assert total == pytest.approx(now, rel=1e-6, abs=1e-6)


@given(st.integers(1, 40), st.sampled_from([0.1, 0.3, 0.7, 1.1, 61.0]))
def test_turns_that_binary_fractions_miss(passes: int, duration: float) -> None:
    """Tenths of a pass as windows: each tenth is the same in every pass."""
    kernel = Kernel(0.0, duration / 2, 1.0)
    source = played(build([kernel], duration=duration), loop=True)
    source.read(0.0)
    for tenth in range(1, 10 * passes + 1):
        busy = values(source.read(tenth * duration / 10))["busy"]
        assert busy == pytest.approx(1.0 if (tenth - 1) % 10 < 5 else 0.0, abs=1e-6)


def test_a_shorter_timeline_rests_until_the_longest_ends() -> None:
    short = build([Kernel(0.0, 1.0, 1.0)], duration=1.0, levels={"power": steps(1.0, (0.0, 300.0), (0.5, 80.0))})
    long = build([Kernel(0.0, 4.0, 0.25)])
    source = TimelineSource("test", [(Device(GPU, "0"), short), (Device(OTHER, "1"), long)], loop=True)
    source.read(0.0)
    first = source.read(2.0)
    assert values(first)["busy"] == pytest.approx(0.5)
    assert values(first)["power"] == 80.0  # as it was at its end
    assert values(first)["energy"] == pytest.approx(150.0 + 40.0 + 80.0)
    assert values(first, OTHER)["sm"] == pytest.approx(0.25)
    resting = source.read(4.0)
    assert values(resting)["busy"] == 0.0
    assert values(resting)["energy"] == pytest.approx(270.0 + 160.0)
    assert values(source.read(5.0))["busy"] == pytest.approx(1.0)
    assert source.seconds == 4.0


def test_levels_are_what_holds_at_the_end_of_the_window() -> None:
    levels = {
        "temperature": steps(4.0, (0.0, 40.0), (2.0, 50.0)),
        "clock_event:power_cap": steps(4.0, (0.0, 0.0), (1.0, 1.0)),
        "clock_event:idle": steps(4.0, (0.0, 1.0), (1.0, 0.0)),
        "no_such_field": steps(4.0, (0.0, 1.0)),
    }
    source = played(build(KERNELS[:1], duration=4.0, levels=levels), loop=True)
    first = source.read(0.0)
    assert values(first) == {"temperature": 40.0, "clock_event:power_cap": 0.0, "clock_event:idle": 1.0}
    assert first.devices[0].fields >= {"temperature", "clock_event"}
    assert all(reading.start is None for reading in first.readings)
    labelled = [r for r in source.read(1.5).readings if r.field == "clock_event"]
    assert {(r.label, r.value, r.end) for r in labelled} == {("power_cap", 1.0, 1.5), ("idle", 0.0, 1.5)}
    assert values(source.read(3.9))["temperature"] == 50.0
    assert values(source.read(4.0))["temperature"] == 40.0  # the next pass has begun
    assert values(source.read(6.5))["temperature"] == 50.0


def test_the_last_levels_are_those_of_the_end() -> None:
    source = played(build((), duration=4.0, levels={"temperature": steps(4.0, (0.0, 40.0), (2.0, 50.0))}), length=8.0)
    source.read(0.0)
    assert values(source.read(4.0))["temperature"] == 40.0
    assert values(source.read(9.0))["temperature"] == 50.0


def test_energy_is_the_integral_of_power_and_begins_with_the_first_read() -> None:
    source = played(build((), duration=4.0, levels={"power": steps(4.0, (0.0, 100.0), (3.0, 500.0))}), loop=True)
    first = source.read(50.0)
    assert values(first) == {"power": 100.0, "energy": 0.0}
    assert first.devices[0].fields >= {"power", "energy"}
    for now, joules in ((51.0, 100.0), (53.5, 550.0), (54.0, 800.0), (54.5, 850.0), (62.0, 2400.0)):
        energy = [r for r in source.read(now).readings if r.field == "energy"]
        assert [r.start for r in energy] == [None]
        assert energy[0].value == pytest.approx(joules)


def test_no_power_no_energy() -> None:
    source = played(build(KERNELS, duration=5.0))
    source.read(0.0)
    assert "energy" not in values(source.read(1.0))


def test_what_the_timeline_does_not_know_is_absent_with_a_reason() -> None:
    source = played(build([Kernel(0.0, 1.0, None), Kernel(2.0, 3.0, 0.5)]))
    source.read(0.0)
    by_field: Mapping[str, Reading] = {r.field: r for r in source.read(1.5).readings}
    assert (by_field["sm"].value, by_field["sm"].absence) == (None, Absence.NO_DATA)
    assert by_field["sm"].start == 0.0
    assert by_field["busy"].value == pytest.approx(1.0 / 1.5)
    assert values(source.read(3.0))["sm"] == pytest.approx(0.5 / 1.5)


def test_a_device_gives_only_the_fields_it_says_it_has() -> None:
    instance = Device(Entity(GPU.uuid, 3), "0", frozenset({"sm", "dram", "memory_used"}))
    timeline = build(KERNELS, duration=5.0, levels={"power": steps(5.0, (0.0, 1.0)), "memory_used": steps(5.0, (0, 7))})
    source = TimelineSource("test", [(instance, timeline)], loop=True)
    source.read(0.0)
    batch = source.read(5.0)
    assert values(batch, instance.entity).keys() == {"sm", "dram", "memory_used"}
    assert batch.devices[0].fields == {"sm", "dram", "memory_used"}


def test_readings_come_in_the_same_order_in_every_process() -> None:
    """A frozenset of names has another order in every process; what is recorded must not."""
    levels = {f"clock_event:{label}": steps(5.0, (0.0, 0.0)) for label in ("idle", "power_cap", "hw_thermal")}
    source = played(build(KERNELS, duration=5.0, levels=levels))
    source.read(0.0)
    readings = source.read(1.0).readings
    kinds = [[(r.field, r.label) for r in readings if (r.start is None) == instant] for instant in (False, True)]
    assert kinds == [sorted(kind) for kind in kinds]
    assert all(r.field in FIELDS for r in readings)


def test_details_go_with_every_batch() -> None:
    source = played(build(KERNELS), details={"simulated": "true"})
    assert source.read(0.0).details == source.read(1.0).details == {"simulated": "true"}
    source.close()


@pytest.mark.parametrize("loop", [True, False])
def test_a_pass_without_length_is_refused(loop: bool) -> None:
    with pytest.raises(ValueError, match="nothing to play"):
        played(build(()), loop=loop)
