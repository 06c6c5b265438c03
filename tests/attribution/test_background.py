"""Reads in the background: what is believed for how long, and what is said of it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence

import pytest

from exporter.attribution.background import STALE_AFTER, AttributionBackground
from exporter.attribution.holdings import Allocations, AttributionError, Holding, Sharing, Workload
from exporter.model import Device, Entity
from tests.end_to_end.processes import wait_for

GPU = Device(Entity("GPU-1"), "0")
OTHER = Device(Entity("GPU-2"), "1")
HELD = Holding(GPU.entity, Workload("ml", "train", "main"), Sharing.EXCLUSIVE)


class Asked:
    """An attributor that does what ``answer`` does."""

    name = "asked"

    def __init__(self) -> None:
        self.devices: list[list[Device]] = []
        self.closed = threading.Event()
        self.answer: Callable[[], Allocations] = lambda: Allocations(
            "asked", [HELD], {"odd": 2}, frozenset({HELD.entity})
        )

    def read(self, devices: Sequence[Device]) -> Allocations:
        self.devices.append(list(devices))
        return self.answer()

    def close(self) -> None:
        self.closed.set()


class Reader:
    """One on a clock that stands still."""

    def __init__(self, interval: float = 10.0) -> None:
        self.asked = Asked()
        self.now = 100.0
        self.background = AttributionBackground(self.asked, interval, lambda: self.now, lambda: 1e9 + self.now)

    def fail(self, error: Exception) -> None:
        def answer() -> Allocations:
            raise error

        self.asked.answer = answer


@pytest.fixture
def reader() -> Iterator[Reader]:
    made = Reader()
    yield made
    made.background.stop(5.0)


def test_before_the_first_read_nothing_is_known(reader: Reader) -> None:
    health = reader.background.health
    assert (health.up, health.last_success, health.reason) == (False, None, "not read yet")
    assert reader.background.holdings == ()
    assert reader.background.allocatable is None


def test_what_was_read(reader: Reader) -> None:
    reader.background.read()
    assert reader.background.holdings == [HELD]
    assert reader.background.allocatable == frozenset({HELD.entity})
    health = reader.background.health
    assert (health.up, health.last_success, health.unresolved, health.reason) == (True, 1e9 + 100, {"odd": 2}, "")
    assert health.all_told


def test_that_not_all_holders_are_told_is_passed_on(reader: Reader) -> None:
    reader.asked.answer = lambda: Allocations("asked", [HELD], all_told=False)
    reader.background.read()
    assert not reader.background.health.all_told


def test_after_a_failure_holders_are_believed_for_a_while_and_then_not(reader: Reader) -> None:
    """Field case 65: old values are dropped."""
    reader.background.read()
    reader.fail(AttributionError("gone", "systemctl start it"))
    reader.now += STALE_AFTER
    reader.background.read()
    health = reader.background.health
    assert (health.up, health.last_success, health.reason) == (False, 1e9 + 100, "gone (systemctl start it)")
    assert reader.background.holdings == [HELD]
    reader.now += 1.0
    assert not reader.background.holdings
    assert reader.background.allocatable is None


def test_one_that_hangs_is_not_up_although_nothing_failed(reader: Reader) -> None:
    reader.background.read()
    assert reader.background.health.up
    reader.now += STALE_AFTER + 1
    assert not reader.background.health.up


def test_one_that_is_read_seldom_is_believed_for_longer() -> None:
    seldom = Reader(interval=100.0)
    seldom.background.read()
    seldom.now += 299.0
    assert seldom.background.holdings == [HELD]
    seldom.now += 2.0
    assert not seldom.background.holdings


def test_a_loss_and_a_return_are_said_once(reader: Reader, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    good = reader.asked.answer
    for answer in (good, good):
        reader.asked.answer = answer
        reader.background.read()
    reader.fail(AttributionError("gone"))
    for _ in range(3):
        reader.background.read()
    reader.asked.answer = good
    reader.background.read()
    assert [record.getMessage() for record in caplog.records] == [
        "attribution asked is read",
        "attribution asked cannot be read: gone",
        "attribution asked is read",
    ]


def test_an_error_that_nobody_foresaw_is_one_too(reader: Reader) -> None:
    reader.fail(ZeroDivisionError("oh"))
    reader.background.read()
    assert reader.background.health.reason == "ZeroDivisionError: oh"


def test_it_reads_once_there_are_devices_and_at_once_when_they_change() -> None:
    patient = Reader(interval=3600.0)
    patient.background.start()
    assert patient.asked.devices == []
    for devices in ([GPU], [GPU, OTHER]):
        patient.background.devices(devices)
        wait_for(lambda expected=devices: patient.asked.devices[-1:] == [expected], "a read")
        patient.background.devices(list(devices))  # the same: no reason to read
    assert len(patient.asked.devices) == 2
    patient.background.stop(10.0)
    assert patient.asked.closed.is_set()


def test_one_that_hangs_is_left_behind_at_the_end() -> None:
    hanging, ended = Reader(), threading.Event()

    def wait() -> Allocations:
        ended.wait(60.0)
        raise AttributionError("ended")

    hanging.asked.answer = wait
    hanging.background.start()
    hanging.background.devices([GPU])
    wait_for(lambda: hanging.asked.devices, "the read")
    hanging.background.stop(0.05)
    assert not hanging.asked.closed.is_set()
    ended.set()
    assert hanging.asked.closed.wait(10.0)
