"""What reading costs a hostengine, in requests; and that nothing is lost by asking for so little."""

import itertools
import logging
import random

import pytest

from tests.abi.dcgm.scenario import Scenario
from tests.abi.dcgm.values import Value, steps

from .conftest import Drive
from .driving import SHIFT, Driver, of, spans
from .nodes import a100, board, geforce, gpu, mig_gpu, node, with_fields
from .observing import Observer

SETTLED = 20.0
MINUTE = 60.0


def requests(driver: Driver, interval: float = 1.0) -> dict[str, int]:
    """What a minute of reads asks for once everything has settled, by function."""
    driver.run(0.0, SETTLED, interval)
    before = driver.report.requests_by
    driver.run(SETTLED + interval, SETTLED + MINUTE, interval)
    return {name: count - before.get(name, 0) for name, count in driver.report.requests_by.items()}


def per_read(scenario: Scenario, drive: Drive, interval: float = 1.0) -> dict[str, int]:
    driver = drive(scenario, interval=interval)
    asked = requests(driver, interval)
    driver.source.close()
    return {name: count for name, count in asked.items() if count}


def test_a_read_is_one_request_however_many_gpus_and_fields(drive: Drive) -> None:
    one, eight = (per_read(node(*(gpu(number) for number in range(count))), drive) for count in (1, 8))
    assert one.pop("dcgmGetDeviceAttributes") == 1  # what each GPU is, once a minute
    assert eight.pop("dcgmGetDeviceAttributes") == 8
    lives = [asked.pop("dcgmEntitiesGetLatestValues") for asked in (one, eight)]
    assert lives == [6 + 1, 6 + 8]  # the hostengine's time every 10 s, names once a minute
    assert one == eight
    assert one["dcgmGetLatestValues_v2"] == 60 + 12  # every second, every 5 s
    assert sum(one.values()) <= 60 * 2
    assert "dcgmGetValuesSince_v2" not in one


def test_a_board_that_is_cut_is_one_request_more(drive: Drive) -> None:
    one, seven = (per_read(node(*(mig_gpu(number) for number in range(count))), drive) for count in (1, 7))
    assert one["dcgmGetLatestValues_v2"] == seven["dcgmGetLatestValues_v2"] == 2 * 60 + 12
    assert "dcgmGetValuesSince_v2" not in seven


def test_gpus_of_different_kinds_are_one_request(drive: Drive) -> None:
    """Also fields that one of them refuses, and a GPU that cannot be measured at all."""
    asked = per_read(node(gpu(0), a100(1), geforce(2)), drive)
    assert asked["dcgmGetLatestValues_v2"] == 60 + 12
    assert "dcgmGetValuesSince_v2" not in asked


def test_ten_reads_a_second_are_ten_requests(drive: Drive) -> None:
    asked = per_read(node(gpu(0), gpu(1)), drive, 0.1)
    assert asked["dcgmGetLatestValues_v2"] == pytest.approx(600 + 66 + 12, abs=5)
    assert "dcgmGetValuesSince_v2" not in asked


# ---- nothing is lost ----


def flapping(end: float, on: float = 3.0, off: float = 7.0) -> tuple[Value, float]:
    """SM active of a load that comes and goes, and its integral."""
    points, seconds, at = [(-1000.0, 0.0)], 0.0, 2.3
    while at < end:
        points += [(at, 0.9), (at + on, 0.0)]
        seconds += 0.9 * (min(at + on, end) - at)
        at += on + off
    return steps(*points), seconds


def watched_by_another(driver: Driver, interval: float) -> None:
    """Another client of the same hostengine, that watches SM active."""
    session = driver.source._node
    assert session is not None
    agent, structs = session.session.bindings.agent, session.session.bindings.structs
    params = structs.c_dcgmConnectV2Params_v2()
    params.timeoutMs = 1000
    handle = agent.dcgmConnect_v2("127.0.0.1:5555", params)
    group = agent.dcgmGroupCreate(handle, structs.DCGM_GROUP_EMPTY, "another")
    agent.dcgmGroupAddEntity(handle, group, 1, 0)
    fields = agent.dcgmFieldGroupCreate(handle, [1002], "another's")
    agent.dcgmWatchFields(handle, group, fields, round(interval * 1e6), 60.0, 0)


def integral(driver: Driver) -> tuple[float, float]:
    """Seconds of SM active, and the seconds for which it is known."""
    pieces = [span for batch in driver.batches for span in spans(of(batch, "sm", board()))]
    assert all(a[1] <= b[0] + 1e-6 for a, b in itertools.pairwise(pieces)), "no time twice"
    return sum((end - start) * value for start, end, value in pieces), sum(end - start for start, end, _ in pieces)


@pytest.mark.parametrize("other", [None, 0.1, 0.25, 0.3, 0.5, 0.9, 1.0, 30.0])
def test_a_load_that_flaps_is_counted_whole(drive: Drive, other: float | None) -> None:
    """3 s on, 7 s off, over 2 minutes; another client comes after a while, with an interval of its own."""
    shape, expected = flapping(120.0)
    driver = drive(node(with_fields(gpu(), {1002: shape})))
    driver.run(0.0, 33.0)
    if other is not None:
        driver.playing.clock.set(33.47)  # type: ignore[union-attr]
        watched_by_another(driver, other)
    driver.run(34.0, 120.0)
    counted, seconds = integral(driver)
    assert seconds > 120 - 2.5
    assert counted / seconds == pytest.approx(expected / 120, abs=0.01)


def test_a_faster_client_is_named(drive: Drive, caplog: pytest.LogCaptureFixture) -> None:
    driver = drive(node(gpu()))
    driver.run(0.0, 10.0)
    watched_by_another(driver, 0.25)
    with caplog.at_level(logging.INFO):
        driver.run(11.0, 40.0)
    said = [record.getMessage() for record in caplog.records if "another client" in record.getMessage()]
    assert len(said) == 1
    assert "GPU 0" in said[0]
    assert "0.25 s" in said[0]


def test_a_client_that_was_content_with_less_is_warned_about(drive: Drive, caplog: pytest.LogCaptureFixture) -> None:
    """As dcgm-exporter's 30 s: its means become means of the last second. Our own samples of before are no client's."""
    driver = drive(node(gpu()))
    driver.run(0.0, 5.0)
    watched_by_another(driver, 30.0)
    driver.source._disconnect()
    driver.run(6.0, 8.0)
    assert not [record for record in caplog.records if "leaves it alone" in record.getMessage()]
    driver.source._disconnect()
    driver.read(3000.5)
    (said,) = [record.getMessage() for record in caplog.records if "leaves it alone" in record.getMessage()]
    assert driver.source.neighbours is not None
    assert driver.source.neighbours.notes() == [said]
    assert "every 30 s" in said
    assert "--sampling.interval=30s" in said


def test_reads_that_are_late_lose_nothing(drive: Drive) -> None:
    """Up to several seconds, as on a node with too much to do."""
    shape, _ = flapping(300.0, 1.0, 2.0)
    driver = drive(node(with_fields(gpu(), {1002: shape})))
    late = random.Random(7)
    at = 0.0
    while at < 200.0:
        driver.read(at)
        at += late.choice((0.7, 1.0, 1.0, 1.0, 1.3, 2.6, 6.0))
    pieces = [span for batch in driver.batches for span in spans(of(batch, "sm"))]
    assert [a[1] for a in pieces[:-1]] == pytest.approx([b[0] for b in pieces[1:]])
    assert pieces[0][0] == 0.0
    assert pieces[-1][1] == pytest.approx(at, abs=8.0)


def test_histories_that_take_longer_than_the_interval_do_not_feed_themselves(
    drive: Drive, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At 10 Hz, where one takes longer than that: what a late read missed is asked for once, then all is well again."""
    driver = drive(node(gpu()), interval=0.1)
    clock = driver.playing.clock
    assert clock is not None
    driver.run(0.0, 5.0, 0.1)
    call, histories = driver.source._node.session.call, 0  # type: ignore[union-attr]

    def slowly(function: str, *arguments: object) -> object:
        nonlocal histories
        if function == "dcgmGetValuesSince_v2":
            histories += 1
            clock.set(clock.now + 0.35)
        return call(function, *arguments)

    monkeypatch.setattr(driver.source._node.session, "call", slowly)  # type: ignore[union-attr]
    at = 5.9  # a read that is late
    for _ in range(100):
        driver.read(at)
        at = max(at, clock.now) + 0.1
    assert 0 < histories <= 3
    counted, seconds = integral(driver)
    assert seconds > at - 3.0
    assert counted == pytest.approx(0.98 * seconds)


def test_a_clock_that_is_set_back_costs_a_sample(drive: Drive) -> None:
    """The hostengine's own, by an hour: what was read stays, and reading goes on."""
    observer = Observer(drive(node(gpu())))
    observer.until(20.0)
    node_ = observer.driver.source._node
    assert node_ is not None
    for gpu_ in node_._gpus.values():
        for watch in [plain.watch for plain in gpu_._plain] + [each.measurement.watch for each in gpu_._measured]:
            assert watch is not None
            watch._seen = {key: time + 3_600_000_000 for key, time in watch._seen.items()}
            watch._since += 3_600_000_000
    view = observer.until(40.0)[board()]
    assert view.totals.observed["sm"] == pytest.approx(40.0, abs=3.3)
    assert view.means["busy"] == 1.0
    assert SHIFT + 40.0 - max(reading.end for reading in of(observer.driver.batches[-1], "power")) < 2.0
