"""When something that failed is tried again."""

from __future__ import annotations

from exporter.background.backoff import Backoff


def test_waits_double_up_to_the_longest() -> None:
    backoff = Backoff(10.0, 60.0)
    assert backoff.due(0.0)
    assert [backoff.failed(0.0) for _ in range(5)] == [10.0, 20.0, 40.0, 60.0, 60.0]


def test_it_is_due_when_the_wait_is_over() -> None:
    backoff = Backoff(10.0, 60.0)
    backoff.failed(100.0)
    assert not backoff.due(109.0)
    assert backoff.due(110.0)


def test_after_a_success_the_next_failure_is_a_first_one() -> None:
    backoff = Backoff(10.0, 60.0)
    backoff.failed(0.0)
    backoff.worked()
    assert backoff.due(0.0)
    assert backoff.failed(1.0) == 10.0


def test_after_a_calm_time_the_next_failure_is_a_first_one() -> None:
    backoff = Backoff(10.0, 60.0, calm=120.0)
    assert [backoff.failed(now) for now in (0.0, 120.0, 241.0, 242.0)] == [10.0, 20.0, 10.0, 20.0]
