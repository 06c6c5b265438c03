"""Wall-clock timestamps on the monotonic line."""

import types

import pytest

from exporter.sources.dcgm import timeline
from exporter.sources.dcgm.timeline import TimeLine

WALL = 1_767_225_600


def at(line: TimeLine, now: float, hostengine: float) -> None:
    line.begin(now)
    line.measure(round(hostengine * 1e6))


@pytest.fixture(autouse=True)
def elapsed(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The process's own clock, set by hand."""
    clock = [0.0]
    monkeypatch.setattr(timeline, "time", types.SimpleNamespace(monotonic=lambda: clock[0]))
    return clock


def test_a_slow_call_does_not_move_the_line(elapsed: list[float]) -> None:
    line = TimeLine()
    at(line, 100.0, WALL)
    line.begin(101.0)
    elapsed[0] += 0.4
    line.measure((WALL + 1) * 1_000_000)
    assert line.now == pytest.approx(101.4)
    assert line.place((WALL + 1) * 1_000_000) == pytest.approx(101.0)


def test_the_quickest_call_counts(elapsed: list[float]) -> None:
    line = TimeLine()
    line.begin(100.0)
    elapsed[0] += 0.2
    line.measure(WALL * 1_000_000)
    at(line, 101.0, WALL + 1)
    assert line.place(WALL * 1_000_000) == pytest.approx(100.0)


def test_a_call_that_comes_back_late_is_placed_when_it_was_answered(elapsed: list[float]) -> None:
    line = TimeLine()
    at(line, 100.0, WALL)
    line.begin(101.0)
    elapsed[0] += 90.0
    line.measure((WALL + 91) * 1_000_000)
    assert line.place((WALL + 91) * 1_000_000) == pytest.approx(191.0)


@pytest.mark.parametrize("step", [3600.0, -3600.0, 0.5])
def test_a_clock_that_is_set_is_followed(step: float) -> None:
    line = TimeLine()
    at(line, 100.0, WALL)
    at(line, 101.0, WALL + 1 + step)
    assert line.place(round((WALL + 1 + step) * 1e6)) == pytest.approx(101.0)
