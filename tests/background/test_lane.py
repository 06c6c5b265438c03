"""A lane runs one job at a time, and one that hangs costs one thread, once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

from exporter.background.lane import Lane
from tests.end_to_end.processes import wait_for

PATIENCE = 10.0  # seconds until a test gives up


class Hanging:
    """A job that does not return before it is let go."""

    def __init__(self) -> None:
        self.gone = threading.Event()

    def __call__(self) -> str:
        assert self.gone.wait(60.0)
        return "late"


@pytest.fixture
def lane() -> Iterator[Lane[str]]:
    made: Lane[str] = Lane("test-lane")
    yield made
    made.stop()
    made.join(PATIENCE)


@pytest.fixture
def hanging() -> Iterator[Hanging]:
    made = Hanging()
    yield made
    made.gone.set()


def run(lane: Lane[str], job: Callable[[], str]) -> str:
    assert lane.start(job)
    assert lane.done(PATIENCE)
    return lane.take()


def test_what_a_job_returns_is_taken_once(lane: Lane[str]) -> None:
    assert not lane.done(0.0)
    assert run(lane, lambda: threading.current_thread().name) == "test-lane"
    assert not lane.busy
    assert not lane.done(0.0)


def test_what_a_job_raises_comes_to_whoever_takes_it(lane: Lane[str]) -> None:
    def fail() -> str:
        raise ValueError("bad")

    with pytest.raises(ValueError, match="bad"):
        run(lane, fail)
    assert run(lane, lambda: "next") == "next"


def test_no_job_is_begun_before_the_result_of_the_last_is_taken(lane: Lane[str]) -> None:
    assert lane.start(lambda: "first")
    assert lane.done(PATIENCE)
    assert lane.busy
    assert not lane.start(lambda: "second")
    assert lane.take() == "first"


def test_a_late_result_is_taken_when_it_comes(lane: Lane[str], hanging: Hanging) -> None:
    lane.start(hanging)
    assert not lane.done(0.01)
    assert not lane.start(lambda: "second")
    hanging.gone.set()
    assert lane.done(PATIENCE)
    assert lane.take() == "late"


def test_a_result_that_was_given_up_is_dropped(lane: Lane[str], hanging: Hanging) -> None:
    threads = threading.active_count()
    lane.start(hanging)
    lane.abandon()
    for _ in range(3):
        assert not lane.start(lambda: "second")
    assert threading.active_count() == threads
    hanging.gone.set()
    wait_for(lambda: not lane.busy, "the job")
    assert run(lane, lambda: "third") == "third"


def test_the_last_call_comes_after_the_job_in_the_same_thread(lane: Lane[str], hanging: Hanging) -> None:
    ended: list[str] = []
    lane.start(hanging)
    lane.stop(lambda: ended.append(threading.current_thread().name))
    lane.join(0.05)
    assert not ended
    hanging.gone.set()
    lane.join(PATIENCE)
    assert ended == ["test-lane"]
