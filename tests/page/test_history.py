"""Ten minutes in memory: bounded, exact means, gaps where there was nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.clock import VirtualClock
from exporter.core.pipeline import Pipeline
from exporter.core.snapshot import Snapshot
from exporter.model import Batch, Device, Entity, Problem, Reading
from exporter.page.history import COLUMNS, KEPT_SECONDS, History

BOARD = Entity("GPU-1")
OTHER = Entity("GPU-2")
FIELDS = frozenset({"busy", "sm", "tensor"})


class Feed:
    """A pipeline that is fed means by hand, one interval after the other."""

    def __init__(self, interval: float) -> None:
        self.clock = VirtualClock(timestamp=1000.0)
        self._interval = interval
        self._pipeline = Pipeline(self.clock, interval)

    def next(self, means: Mapping[str, float | None], entities: Sequence[Entity] = (BOARD,)) -> Snapshot:
        start = self.clock.monotonic()
        self.clock.advance(self._interval)
        end = self.clock.monotonic()
        readings = [
            Reading(entity, field, end, value, start)
            for entity in entities
            for field, value in means.items()
            if value is not None
        ]
        devices = [Device(entity, str(number), FIELDS) for number, entity in enumerate(entities)]
        self._pipeline.absorb(Batch("test", end, devices, readings))
        return self._pipeline.publish()

    def failed(self) -> Snapshot:
        self.clock.advance(self._interval)
        self._pipeline.failed("test", Problem("test cannot be read", "gone", ""))
        return self._pipeline.publish()


def values(history: History, column: str, entity: Entity = BOARD) -> list[float | None]:
    return list(history.since(0.0).columns[entity][column])


def test_a_point_is_the_mean_of_all_windows_since_the_last_one() -> None:
    feed, history = Feed(0.1), History()
    for number in range(101):  # one window of ten at 0.91, the others at 0.01: a sampled gauge would show one of these
        on = 0.91 if number % 10 == 0 else 0.01
        history.add(feed.next({"busy": 1.0, "sm": on, "tensor": on / 2}))
    points = history.since(0.0)
    assert len(points.timestamps) == 11
    assert values(history, "sm")[1:] == pytest.approx([0.1] * 10, abs=1e-3)
    assert values(history, "hollow")[1:] == pytest.approx([0.9] * 10, abs=1e-3)
    assert values(history, "working")[1:] == pytest.approx([0.05] * 10, abs=1e-3)
    assert values(history, "seconds")[1:] == pytest.approx([1.0] * 10, abs=1e-3)


@pytest.mark.parametrize("interval", [0.1, 1.0, 7.0])
def test_it_is_bounded_by_number_and_by_age(interval: float) -> None:
    feed, history = Feed(interval), History()
    for _ in range(round(1500 / interval)):
        history.add(feed.next({"busy": 0.5, "sm": 0.5, "tensor": 0.5}))
    timestamps = history.since(0.0).timestamps
    assert len(timestamps) <= KEPT_SECONDS
    assert timestamps[-1] - timestamps[0] < KEPT_SECONDS
    assert timestamps[-1] - timestamps[0] > KEPT_SECONDS - 2 * max(interval, 1.0)  # and nothing is lost before its time
    assert min(later - sooner for sooner, later in pairwise(timestamps)) > 0.9


def test_time_without_data_is_a_gap_not_a_zero() -> None:
    feed, history = Feed(1.0), History()
    full = {"busy": 1.0, "sm": 0.5, "tensor": 0.5}
    for snapshot in (feed.next(full), feed.failed(), feed.failed(), feed.next(full)):
        history.add(snapshot)
    assert values(history, "claimed") == [1.0, None, None, 1.0]
    assert values(history, "idle") == [0.0, None, None, 0.0]
    assert values(history, "seconds") == [1.0, None, None, 1.0]  # not three: nobody looked for two of them


def test_what_the_inputs_cannot_tell_is_absent() -> None:
    feed, history = Feed(1.0), History()
    history.add(feed.next({"busy": 0.75}))
    assert values(history, "claimed") == [0.75]
    assert values(history, "sm") == [None]


def test_only_what_is_later_is_given() -> None:
    feed, history = Feed(1.0), History()
    for _ in range(5):
        history.add(feed.next({"busy": 1.0, "sm": 1.0, "tensor": 1.0}))
    timestamps = history.since(0.0).timestamps
    assert history.since(timestamps[2]).timestamps == timestamps[3:]
    assert history.since(timestamps[-1]).timestamps == []
    assert history.since(timestamps[-1]).columns == {}


def test_entities_come_and_go() -> None:
    feed, history = Feed(1.0), History()
    full = {"busy": 1.0, "sm": 1.0, "tensor": 1.0}
    history.add(feed.next(full))
    history.add(feed.next(full, (BOARD, OTHER)))
    history.add(feed.next(full, (OTHER,)))
    assert values(history, "sm") == [1.0, 1.0, None]
    assert values(history, "sm", OTHER) == [None, 1.0, 1.0]
    assert {len(column) for columns in history.since(0.0).columns.values() for column in columns.values()} == {3}


def test_books_that_began_anew_are_read_from_their_begin() -> None:
    history = History()
    for busy, windows in ((0.25, 3), (0.75, 1)):  # the second pipeline knows nothing, as after an hour without the GPU
        feed = Feed(1.0)
        feed.clock.advance(10.0 * busy)
        for _ in range(windows):
            snapshot = feed.next({"busy": busy, "sm": 0.1, "tensor": 0.1})
        history.add(snapshot)
    assert values(history, "claimed") == [0.25, 0.75]


def test_staleness_follows_the_pace() -> None:
    now = 0.0
    history, feed = History(lambda: now), Feed(1.0)
    assert history.freshness() is None

    def age(seconds: float) -> bool:
        nonlocal now
        now += seconds
        found = history.freshness()
        assert found is not None
        return found.stale

    history.add(feed.next({"busy": 1.0}))
    assert not age(4.0)
    assert age(2.0)
    history.add(feed.next({"busy": 1.0}))  # 6 s after the one before: that is the pace now
    assert not age(17.0)
    assert age(2.0)


RATIOS = st.floats(0.0, 1.0)


def windows() -> st.SearchStrategy[list[dict[str, float | None]]]:
    maybe = st.one_of(st.none(), RATIOS)
    return st.lists(st.fixed_dictionaries({"busy": maybe, "sm": maybe, "tensor": maybe}), min_size=1, max_size=60)


def booked(points: Mapping[str, Sequence[float | None]], column: str) -> Iterator[float]:
    for ratio, seconds in zip(points[column], points["seconds"], strict=True):
        if ratio is not None and seconds is not None:
            yield ratio * seconds


@given(windows(), st.sampled_from([0.1, 0.5, 1.0, 3.0]))
def test_points_add_up_to_the_ledger(fed: list[dict[str, float | None]], interval: float) -> None:
    feed, history = Feed(interval), History()
    for means in fed:  # all fields or none: each column is then a mean over the same seconds
        history.add(feed.next(means if None not in means.values() else {}))
    feed.clock.advance(2.0)  # the last window may be too near the point before: one more takes it up
    last = feed.failed()
    history.add(last)
    totals = last.entities[0].totals
    points = history.since(0.0).columns[BOARD]
    tolerance = 1e-3 * len(fed)
    assert sum(booked(points, "claimed")) == pytest.approx(totals.seconds.get("busy", 0.0), abs=tolerance)
    for part in ("working", "stalled", "hollow", "idle"):
        assert sum(booked(points, part)) == pytest.approx(totals.parts.get(part, 0.0), abs=tolerance)


@given(windows())
def test_fields_that_drop_out_by_themselves_leave_true_means(fed: list[dict[str, float | None]]) -> None:
    feed, history = Feed(0.5), History()
    for means in fed:
        history.add(feed.next(means))
    for column in COLUMNS[1:]:
        assert all(ratio is None or -1e-3 <= ratio <= 1.001 for ratio in values(history, column))
