"""Fields read over different windows meet on common intervals, and only there."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.core.align import HORIZON, Aligner


def test_same_windows_give_one_interval() -> None:
    aligner = Aligner()
    aligner.add("busy", 0.0, 1.0, 0.9)
    aligner.add("sm", 0.0, 1.0, 0.1)
    assert [tuple(i) for i in aligner.cut(("busy", "sm"))] == [(0.0, 1.0, {"busy": 0.9, "sm": 0.1})]


def test_the_remainder_waits_for_the_other_field() -> None:
    aligner = Aligner()
    aligner.add("busy", 0.0, 1.2, 0.5)
    aligner.add("sm", 0.0, 1.0, 0.1)
    assert [(i.start, i.end) for i in aligner.cut(("busy", "sm"))] == [(0.0, 1.0)]
    aligner.add("busy", 1.2, 2.2, 1.0)
    aligner.add("sm", 1.0, 2.0, 0.2)
    (interval,) = aligner.cut(("busy", "sm"))
    assert (interval.start, interval.end) == (1.0, 2.0)
    assert interval.means["busy"] == pytest.approx(0.2 * 0.5 + 0.8 * 1.0)


def test_a_missing_field_gives_no_interval_and_nothing_is_carried_over() -> None:
    aligner = Aligner()
    aligner.add("busy", 0.0, 1.0, 0.9)
    assert aligner.cut(("busy", "sm")) == []
    aligner.add("busy", 1.0, 2.0, 0.9)
    aligner.add("sm", 1.0, 2.0, 0.4)
    assert [(i.start, i.end) for i in aligner.cut(("busy", "sm"))] == [(1.0, 2.0)]


def test_a_slow_field_is_waited_for_but_not_for_ever() -> None:
    aligner = Aligner()
    for second in range(100):
        aligner.add("busy", second, second + 1.0, 0.9)
        assert aligner.cut(("busy", "sm")) == []
    aligner.add("sm", 0.0, 100.0, 0.4)
    (interval,) = aligner.cut(("busy", "sm"))
    assert (interval.start, interval.end) == (100.0 - HORIZON, 100.0)


def test_a_hole_splits() -> None:
    aligner = Aligner()
    aligner.add("busy", 0.0, 3.0, 0.9)
    aligner.add("sm", 0.0, 1.0, 0.1)
    aligner.add("sm", 2.0, 3.0, 0.3)
    assert [(i.start, i.end, i.means["sm"]) for i in aligner.cut(("busy", "sm"))] == [(0.0, 1.0, 0.1), (2.0, 3.0, 0.3)]


pieces = st.lists(st.tuples(st.floats(0.01, 2.0), st.floats(0.0, 1.0), st.booleans()), min_size=1, max_size=12)


@given(left=pieces, right=pieces)
def test_intervals_are_disjoint_ordered_and_weighed_right(
    left: list[tuple[float, float, bool]], right: list[tuple[float, float, bool]]
) -> None:
    aligner = Aligner()
    covered: dict[str, list[tuple[float, float, float]]] = {"a": [], "b": []}
    for field, track in (("a", left), ("b", right)):
        now = 0.0
        for seconds, value, present in track:
            if present:
                aligner.add(field, now, now + seconds, value)
                covered[field].append((now, now + seconds, value))
            now += seconds
    previous = 0.0
    for interval in aligner.cut(("a", "b")):
        assert interval.start >= previous - 1e-9
        assert interval.end > interval.start
        previous = interval.end
        for field, track_pieces in covered.items():
            overlaps = [(min(e, interval.end) - max(s, interval.start), v) for s, e, v in track_pieces]
            inside = [(seconds, value) for seconds, value in overlaps if seconds > 0]
            assert sum(seconds for seconds, _ in inside) == pytest.approx(interval.seconds, abs=1e-4)
            mean = sum(seconds * value for seconds, value in inside) / interval.seconds
            assert interval.means[field] == pytest.approx(mean, abs=1e-3)
