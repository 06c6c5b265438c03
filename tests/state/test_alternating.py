"""Loads that come and go: how often their state changes, and how many lines that writes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import pytest

from exporter.model import Entity
from exporter.state.hysteresis import HOLD, LONG, STEADY
from exporter.state.rules import Evidence, State
from exporter.state.stage import StateStage, StateView
from exporter.state.telling import MOST_SAID
from exporter.state.thresholds import Thresholds

Seen = Callable[[Evidence], Evidence]

GPU = Entity("GPU-0")
HOUR = 3600
OFF = Evidence(
    processes=1, busy=0.0, engine=0.0, sm=0.0, tensor=0.0, dram=0.0, pipes={"fp32": 0.0}, pcie=0.0, nvlink=0.0,
    power=0.0, host_pressure=0.2,
)  # fmt: skip
ON = replace(OFF, busy=1.0, engine=1.0, sm=0.95, tensor=0.65, dram=0.3, pipes={"fp32": 0.2}, power=0.7)
SPIN = replace(OFF, busy=1.0, engine=1.0, sm=0.03, power=0.1)


def starved(evidence: Evidence) -> Evidence:
    return evidence


def calm(evidence: Evidence) -> Evidence:
    return replace(evidence, host_pressure=0.0, main_thread=0.1)


def blind(evidence: Evidence) -> Evidence:
    """As where the processes are another machine's, and nobody tells who holds the GPU."""
    return replace(evidence, processes=None)


@dataclass
class Played:
    """What a script led to: each change as (second, state), and the last view."""

    changes: list[tuple[int, State]]
    view: StateView

    @property
    def states(self) -> list[State]:
        return [state for _, state in self.changes]


def play(script: Iterator[Evidence], seconds: int = HOUR) -> Played:
    stage, changes = StateStage(Thresholds()), [(0, State.UNKNOWN)]
    for second, evidence in enumerate(itertools.islice(script, seconds)):
        view = stage.update(float(second), GPU, evidence, {})
        if view.verdict.state is not changes[-1][1]:
            changes.append((second, view.verdict.state))
    return Played(changes, view)


def load(on: int, off: int, seen: Seen = starved) -> Iterator[Evidence]:
    return itertools.cycle([seen(ON)] * on + [seen(OFF)] * off)


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name.startswith("exporter.state")]


@pytest.fixture(autouse=True)
def _all_lines(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")


@pytest.mark.parametrize(
    ("on", "off", "seen", "expected"),
    [
        (3, 7, calm, [State.MIXED]),  # the window is longer than the period: nothing moves
        (3, 7, starved, [State.INPUT_STARVED]),
        (20, 40, calm, [State.MIXED]),
        (20, 40, starved, [State.MIXED]),  # SM active 0.32: the host explains it below 0.3
        (15, 45, starved, [State.MIXED, State.INPUT_STARVED]),  # on for half of the first 30 s, a quarter of the rest
        (20, 40, blind, [State.MIXED]),
        (60, 60, calm, [State.TENSOR_BOUND, State.MIXED]),  # its first minute, then the mean
        (300, 300, calm, [State.TENSOR_BOUND, State.PROCESS_IDLE] * 6),  # long enough to be named one by one
        (300, 300, blind, [State.TENSOR_BOUND, State.UNKNOWN] * 6),
    ],
)
def test_a_load_that_comes_and_goes(
    on: int, off: int, seen: Seen, expected: list[State], caplog: pytest.LogCaptureFixture
) -> None:
    found = play(load(on, off, seen))
    assert found.states == [State.UNKNOWN, *expected]
    assert sum(found.view.seconds.values()) == pytest.approx(HOUR - 1)  # the first read starts the first window
    assert len(lines(caplog)) <= MOST_SAID


@pytest.mark.parametrize("seen", [calm, starved, blind])
@pytest.mark.parametrize("period", [5, 17, 30, 45, 60])
def test_what_repeats_within_a_minute_settles(period: int, seen: Seen) -> None:
    for on in range(1, period, max(1, period // 5)):
        found = play(load(on, period - on, seen), HOUR // 2)
        assert found.changes[-1][0] <= 2 * LONG * HOLD, f"{on} s on, {period - on} s off"


@pytest.mark.parametrize("period", [80, 120, 140, 170, 200, 260, 420])
def test_whatever_the_period_few_lines_and_no_second_lost(period: int, caplog: pytest.LogCaptureFixture) -> None:
    for on in (period // 8, period // 2):
        caplog.clear()
        found = play(load(on, period - on, blind), 2 * HOUR)
        assert sum(found.view.seconds.values()) == pytest.approx(2 * HOUR - 1)
        assert len(lines(caplog)) <= 2 * MOST_SAID
        times = [second for second, _ in found.changes]
        assert all(b - a >= HOLD for a, b in itertools.pairwise(times[1:]))


def test_a_mean_on_the_edge_of_two_states_changes_at_most_each_five_minutes() -> None:
    """40 s in 120 s: in 300 s are two periods and a half, so that SM active moves about its limit of 0.3."""
    found = play(load(40, 80))
    assert set(found.states[-4:]) == {State.MIXED, State.INPUT_STARVED}
    named_by_the_mean = [second for second, _ in found.changes[2:]]
    assert all(b - a >= LONG * HOLD for a, b in itertools.pairwise(named_by_the_mean))


@pytest.mark.parametrize(
    ("first", "then", "expected"),
    [
        (ON, SPIN, State.SUSPECTED_HANG),
        (ON, OFF, State.PROCESS_IDLE),
        (OFF, ON, State.TENSOR_BOUND),
        (OFF, SPIN, State.SUSPECTED_HANG),
        (SPIN, ON, State.TENSOR_BOUND),
    ],
)
def test_a_step_is_followed_within_three_windows_without_a_state_between(
    first: Evidence, then: Evidence, expected: State
) -> None:
    found = play(itertools.chain([first] * 600, itertools.repeat(then)))
    assert len(found.changes) == 3
    second, state = found.changes[-1]
    assert state is expected
    assert 600 < second <= 600 + (STEADY + 1) * HOLD + 1


def test_the_mean_of_a_load_that_takes_turns_says_so() -> None:
    found = play(itertools.chain([ON] * 600, load(20, 40)))
    assert found.states == [State.UNKNOWN, State.TENSOR_BOUND, State.MIXED]
    assert found.view.verdict.reason == "no single limit; mean over 300 s: the load comes and goes"
    later = play(itertools.chain([ON] * 600, itertools.islice(load(20, 40), 1200), itertools.repeat(ON)))
    assert later.states[3:] == [State.TENSOR_BOUND]  # a steady load is named again, and not after the long window
    assert later.changes[-1][0] <= 1800 + (STEADY + 1) * HOLD + 1
    assert later.view.verdict.reason == "tensor pipe at 65%"


def test_a_state_whose_input_is_gone_is_left_at_once() -> None:
    lacking = replace(ON, tensor=None, sm=None)
    found = play(itertools.chain([ON] * 600, itertools.repeat(lacking)))
    assert found.states == [State.UNKNOWN, State.TENSOR_BOUND, State.UNKNOWN]
    assert found.changes[-1][0] <= 600 + HOLD / 2 + 1


def test_a_state_lasts_its_least_time_also_when_its_input_goes_soon() -> None:
    found = play(itertools.chain([ON] * 32, itertools.repeat(replace(ON, tensor=None, sm=None))))
    assert found.states == [State.UNKNOWN, State.TENSOR_BOUND, State.UNKNOWN]
    assert found.changes[2][0] - found.changes[1][0] == HOLD


def test_a_gap_is_no_evidence() -> None:
    """What was there for 10 s before an outage has not been there for the ten minutes of it."""
    stage, now = StateStage(Thresholds()), 0.0
    for evidence in [ON] * 600 + [OFF] * 33:
        now += 1
        stage.update(now, GPU, evidence, {})
    now += 600
    for _ in range(10):
        now += 1
        view = stage.update(now, GPU, OFF, {})
    assert view.verdict.state is State.TENSOR_BOUND
    assert sum(view.seconds.values()) == pytest.approx(600 + 33 - 1 + 9)


def test_what_unknown_lacks_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    play(load(300, 300, blind), 5 * HOUR)
    assert sum("cannot rule out unallocated" in line for line in lines(caplog)) == 1
    caplog.clear()
    play(itertools.repeat(blind(OFF)))  # unknown from the start, and for good
    missing = "unallocated, allocated_no_process, process_idle"
    assert lines(caplog) == [f"GPU-0: unknown: cannot rule out {missing}: inputs missing"]


def test_changes_that_are_not_written_are_counted(caplog: pytest.LogCaptureFixture) -> None:
    found = play(load(300, 300), 5 * HOUR)
    told = lines(caplog)
    counts = [int(line.partition("last line: ")[2].rstrip(")")) if "last line" in line else 1 for line in told]
    assert told[:2] == [
        "GPU-0: tensor_bound: tensor pipe at 65%",
        "GPU-0: tensor_bound -> process_idle: held, but nothing runs",
    ]
    assert 4 * MOST_SAID <= len(told) <= 5 * MOST_SAID
    assert len(found.changes) - 1 - 12 <= sum(counts) <= len(found.changes) - 1  # the last hour's are to come


def test_the_state_in_which_the_changes_end_is_written_when_there_is_room(caplog: pytest.LogCaptureFixture) -> None:
    play(itertools.chain(itertools.islice(load(300, 300), 3000), itertools.repeat(ON)), 3 * HOUR)
    told = lines(caplog)
    assert len(told) == MOST_SAID + 1
    assert "tensor_bound: tensor pipe at 65% (state changes since the last line: " in told[-1]
