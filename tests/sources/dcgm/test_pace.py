"""The pace of samples, judged by their times."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.sources.dcgm.pace import LEAST, SHARE, Budget, SamplePace


@given(st.floats(0.1, 60.0), st.floats(0.0, 3.0), st.integers(0, 2**50))
def test_a_distance_is_short_regular_or_long(interval: float, distance: float, before: int) -> None:
    pace, time = SamplePace(interval), before + round(distance * interval * 1e6)
    tolerance = max(LEAST, SHARE * interval)
    off = (time - before) * 1e-6 - interval
    if abs(abs(off) - tolerance) > 2e-6:
        assert pace.regular(before, time) == (abs(off) <= tolerance)
        assert pace.short(before, time) == (off < -tolerance)
    assert not (pace.regular(before, time) and pace.short(before, time))
    assert pace.overdue(before, time) == (time - before > round(2.5 * interval * 1e6))


def test_what_takes_long_is_followed_by_as_long_a_rest() -> None:
    budget = Budget()
    budget.begin(10.0)
    assert budget.allows
    budget.spend(10.0, 10.2)
    budget.spend(10.3, 10.4)
    assert budget.allows  # for all of this read
    budget.begin(10.65)
    assert not budget.allows
    budget.begin(10.71)
    assert budget.allows


@pytest.mark.parametrize("seconds", [0.0, 1e-9])
def test_what_takes_no_time_needs_no_rest(seconds: float) -> None:
    budget = Budget()
    budget.begin(1.0)
    budget.spend(1.0, 1.0 + seconds)
    budget.begin(1.1)
    assert budget.allows
