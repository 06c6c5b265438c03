"""The event-timeline model: unions, caps, exact integrals."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.sources.timeline import Copy, Kernel, StepFunction, build

# multiples of 1/64 s: sums of them are exact
times = st.integers(0, 640).map(lambda n: n / 64)
shares = st.integers(0, 64).map(lambda n: n / 64)
kernels = st.lists(
    st.builds(lambda a, b, sm: Kernel(min(a, b), max(a, b), sm, sm / 2), times, times, shares), max_size=12
)


def sampled(parts: list[Kernel], length: float) -> tuple[float, float]:
    """(busy, sm) seconds by looking at every 1/64 s."""
    busy = sm = 0.0
    for n in range(int(length * 64)):
        middle = (n + 0.5) / 64
        live = [k for k in parts if k.start < middle < k.end]
        busy += bool(live) / 64
        sm += min(1.0, sum(k.sm or 0.0 for k in live)) / 64
    return busy, sm


@given(kernels)
def test_busy_is_the_union_and_shares_add_up_to_one_at_most(parts: list[Kernel]) -> None:
    timeline = build(parts, duration=10.0)
    busy, sm = sampled(parts, 10.0)
    assert timeline.integral("busy", 0, 10) == pytest.approx(busy)
    assert timeline.integral("sm", 0, 10) == pytest.approx(sm)
    assert (timeline.integral("sm", 0, 10) or 0.0) <= (timeline.integral("busy", 0, 10) or 0.0) + 1e-9


@given(kernels, times, times, times)
def test_integrals_of_neighbours_add_up(parts: list[Kernel], a: float, b: float, c: float) -> None:
    timeline = build(parts, duration=10.0)
    first, middle, last = sorted((a, b, c))
    whole = timeline.integral("sm", first, last)
    assert whole == pytest.approx(
        (timeline.integral("sm", first, middle) or 0.0) + (timeline.integral("sm", middle, last) or 0.0)
    )


def test_copies_are_bytes_on_their_link_and_not_busy_time() -> None:
    timeline = build(
        [Kernel(0.0, 1.0, 0.5)],
        [
            Copy(2.0, 4.0, 100.0, "host_to_device"),
            Copy(3.0, 4.0, 50.0, "host_to_device"),
            Copy(2.0, 3.0, 7.0, "device_to_host"),
            Copy(2.0, 3.0, 1e9, "device"),
        ],
    )
    assert timeline.duration == 4.0
    assert timeline.integral("busy", 0, 4) == 1.0
    assert timeline.integral("pcie_receive", 0, 4) == 150.0  # rx is host to device
    assert timeline.integral("pcie_receive", 2, 3) == 50.0
    assert timeline.integral("pcie_transmit", 0, 4) == 7.0


def test_what_a_launch_does_not_tell_is_absent_where_it_matters_only() -> None:
    timeline = build([Kernel(0.0, 1.0, None), Kernel(2.0, 3.0, 0.5)], duration=4.0)
    assert timeline.integral("sm", 0.5, 0.7) is None
    assert timeline.integral("sm", 2.0, 4.0) == 0.5
    assert timeline.integral("busy", 0.0, 4.0) == 2.0
    assert "sm_occupancy" not in timeline.channels


def test_levels_hold_until_the_next_one() -> None:
    level = StepFunction.from_segments([(1.0, 2.0, 5.0), (2.0, 3.0, 7.0)], 4.0, rest=1.0)
    assert [level.at(t) for t in (0.5, 1.0, 1.5, 2.5, 3.5)] == [1.0, 5.0, 5.0, 7.0, 1.0]
    assert level.integral(0.0, 4.0) == 1.0 + 5.0 + 7.0 + 1.0
    with pytest.raises(ValueError, match="overlaps"):
        StepFunction.from_segments([(0.0, 2.0, 1.0), (1.0, 3.0, 1.0)], 4.0)
