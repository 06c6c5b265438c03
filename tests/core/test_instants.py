"""Sampling faster than once a second: what is read once a second stands in between, and no longer."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from exporter.clock import VirtualClock
from exporter.core.ledger import HELD
from exporter.core.pipeline import Pipeline
from exporter.core.snapshot import EntityView
from exporter.model import Absence, Reading
from exporter.trust import ProfilingState
from tests.core.building import GPU, batch

Values = Mapping[str, float | Absence]
FAST: Values = {
    "busy": 0.9,
    "graphics_engine": 0.9,
    "sm": 0.5,
    "sm_occupancy": 0.2,
    "tensor": 0.3,
    "fp32": 0.1,
    "dram": 0.2,
}


class Feed:
    """Batches a tenth of a second apart."""

    def __init__(self, interval: float = 0.1) -> None:
        self.clock, self.interval = VirtualClock(), interval
        self.pipeline = Pipeline(self.clock, interval)

    def give(self, values: Values) -> EntityView:
        """The view after one more batch."""
        start = self.clock.monotonic()
        self.clock.advance(self.interval)
        self.pipeline.absorb(batch(start, self.clock.monotonic(), values))
        return self.pipeline.publish().entities[0]


def test_an_instant_stands_until_the_next_is_due() -> None:
    feed = Feed()
    assert feed.give({**FAST, "power": 300.0}).instants == {"power": 300.0}
    for _ in range(int(HELD / 0.1)):
        assert feed.give(FAST).instants == {"power": 300.0}
    assert feed.give(FAST).instants == {}


def test_at_one_window_a_second_nothing_is_carried_on() -> None:
    feed = Feed(1.0)
    feed.give({**FAST, "power": 300.0})
    assert feed.give(FAST).instants == {}


def test_a_field_that_is_said_to_be_absent_is_gone_at_once() -> None:
    feed = Feed()
    feed.give({**FAST, "power": 300.0})
    view = feed.give({**FAST, "power": Absence.ERROR})
    assert view.instants == {}
    assert view.absences["power"] is Absence.ERROR


def test_why_a_field_is_absent_stands_as_long() -> None:
    feed = Feed()
    feed.give({**FAST, "power": Absence.NOT_PERMITTED})
    for _ in range(int(HELD / 0.1)):
        assert feed.give(FAST).absences == {"power": Absence.NOT_PERMITTED}
    assert feed.give(FAST).absences == {}


def test_a_value_ends_the_reason_at_once() -> None:
    feed = Feed()
    feed.give({**FAST, "power": Absence.ERROR})
    view = feed.give({**FAST, "power": 300.0})
    assert (view.instants, dict(view.absences)) == ({"power": 300.0}, {})


def test_a_source_that_was_away_brings_nothing_old_back() -> None:
    feed = Feed()
    feed.give({**FAST, "power": 300.0})
    feed.clock.advance(5.0)
    assert feed.give(FAST).instants == {}


def test_a_stall_is_counted_while_processes_are_asked_for_once_a_second() -> None:
    feed, nothing = Feed(), dict.fromkeys(FAST, 0.0)
    feed.give({**FAST, "processes": 1.0})
    for _ in range(4):
        view = feed.give(nothing)
    feed.give(FAST)
    assert view.totals.stalls == 1
    assert view.totals.stall_seconds == pytest.approx(0.4)


def test_a_value_that_is_read_less_often_has_not_moved() -> None:
    feed = Feed()
    for window in range(300):  # profiling does not change at all, and nor does power when it is read
        view = feed.give({**FAST, "power": 300.0} if window % 9 == 0 else FAST)
    assert view.profiling is ProfilingState.OK


def test_energy_from_power_is_whole_with_power_once_a_second() -> None:
    feed = Feed()
    for window in range(1, 21):
        end = window / 10
        feed.clock.advance(0.1)
        now = feed.clock.monotonic()
        made = batch(now - 0.1, now, FAST)
        power = [Reading(GPU, "power", now, 200.0)] if window % 9 == 1 else []
        feed.pipeline.absorb(type(made)(made.source, now, made.devices, [*made.readings, *power]))
        assert end == pytest.approx(now)
    view = feed.pipeline.publish().entities[0]
    assert view.totals.amounts["energy"] == pytest.approx(200.0 * 1.8)
