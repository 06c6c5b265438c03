"""A repeating task: its pace, its end, and a step that hangs."""

from __future__ import annotations

import threading

from exporter.background.repeating import RepeatingTask
from tests.end_to_end.processes import wait_for

PATIENCE = 10.0  # seconds until a test gives up


def test_each_step_says_when_the_next_one_comes() -> None:
    steps: list[int] = []

    def step() -> float:
        steps.append(len(steps))
        return 0.001 if len(steps) < 3 else 3600.0

    task = RepeatingTask("test-task", step)
    task.start()
    wait_for(lambda: len(steps) == 3, "three steps")
    assert not task.join(0.05)  # it rests
    task.wake()
    wait_for(lambda: len(steps) == 4, "a step before its time")
    task.stop()
    assert task.join(PATIENCE)


def test_it_ends_in_its_own_thread() -> None:
    ended: list[str] = []
    task = RepeatingTask("test-task", lambda: 3600.0, lambda: ended.append(threading.current_thread().name))
    task.start()
    assert not task.stopping
    task.stop()
    assert task.stopping
    assert task.join(PATIENCE)
    assert ended == ["test-task"]


def test_a_step_that_hangs_is_left_behind() -> None:
    begun, gone, ended = threading.Event(), threading.Event(), threading.Event()

    def step() -> float:
        begun.set()
        gone.wait(60.0)
        return 3600.0

    task = RepeatingTask("test-task", step, ended.set)
    task.start()
    assert begun.wait(PATIENCE)
    task.stop()
    assert not task.join(0.05)
    assert not ended.is_set()
    gone.set()
    assert task.join(PATIENCE)
    assert ended.is_set()


def test_one_that_was_never_started_has_ended() -> None:
    task = RepeatingTask("test-task", lambda: 0.0)
    task.stop()
    assert task.join(0.0)
