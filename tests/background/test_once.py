"""What is written to the log, and what is not written again."""

from __future__ import annotations

from exporter.background.once import Condition, RateLimit, Reported


def test_a_condition_has_news_when_it_changes() -> None:
    condition = Condition()
    assert (condition.up, condition.reason) == (False, "not read yet")
    assert [condition.worked(), condition.worked()] == [True, False]
    assert (condition.up, condition.reason) == (True, "")
    assert [condition.failed("gone"), condition.failed("gone"), condition.failed("refused")] == [True, False, True]
    assert (condition.up, condition.reason) == (False, "refused")
    assert condition.worked()


def test_a_failure_without_a_reason_is_a_failure() -> None:
    condition = Condition()
    condition.worked()
    assert condition.failed("")
    assert not condition.up


def test_the_first_time_is_once_for_ever() -> None:
    reported: Reported[str] = Reported()
    assert [reported.first("a"), reported.first("b"), reported.first("a")] == [True, True, False]


def test_what_is_remembered_is_bounded() -> None:
    reported: Reported[int] = Reported(most=2)
    assert [reported.first(number) for number in (1, 2, 3, 3, 1)] == [True, True, False, False, False]


def test_what_lasts_is_new_once_and_again_after_it_was_over() -> None:
    reported: Reported[str] = Reported()
    assert reported.new(["b", "a", "b"]) == ["b", "a"]
    assert reported.new(["a", "b", "c"]) == ["c"]
    assert reported.new(["b"]) == []
    assert reported.new(["a", "b"]) == ["a"]


def test_lines_are_few_in_any_span() -> None:
    limit = RateLimit(2, 3600.0)
    for now in (0.0, 1000.0):
        assert limit.allows(now)
        limit.written(now)
    assert not limit.allows(3599.0)
    assert limit.allows(3600.0)
    limit.written(3600.0)
    assert not limit.allows(4599.0)
    assert limit.allows(4600.0)
