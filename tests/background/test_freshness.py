"""How long a result counts."""

from __future__ import annotations

from exporter.background.freshness import LastKnown, lifetime


def test_it_counts_for_three_intervals_and_a_least_time() -> None:
    assert lifetime(10.0) == 30.0
    assert lifetime(10.0, 60.0) == 60.0
    assert lifetime(100.0, 60.0) == 300.0


def test_the_last_result_until_it_is_too_old() -> None:
    last: LastKnown[str] = LastKnown(30.0)
    assert last.value is None
    assert last.fresh(0.0) is None
    last.update("first", 100.0)
    assert last.fresh(130.0) == "first"
    assert last.fresh(131.0) is None
    assert last.value == "first"
    last.update("second", 131.0)
    assert last.fresh(131.0) == "second"
