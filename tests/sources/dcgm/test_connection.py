"""Hostengines that are not there, die, hang or are of another release; GPUs that come and go."""

import dataclasses
import threading
import time

import pytest

from exporter.model import Absence, SourceError
from exporter.sources.dcgm.bindings import Bindings
from exporter.sources.dcgm.source import DcgmSource
from exporter.trust import ProfilingState
from tests.abi.dcgm.codes import Code
from tests.abi.dcgm.happenings import failing, failing_rows, hanging, losing
from tests.abi.dcgm.values import Window

from .conftest import Drive, PlayScenario
from .driving import SHIFT, Driver, absences, of, spans, values
from .nodes import a100, board, gpu, mig_gpu, node
from .observing import Observer


def test_wrong_addresses_are_told_before_anything_is_opened(bindings: Bindings) -> None:
    with pytest.raises(ValueError, match="whole path"):
        DcgmSource("unix:dcgm.sock", bindings=bindings, interval=1.0)


def test_no_hostengine(drive: Drive) -> None:
    driver = drive(node(gpu(), gone=(Window(),)), timeout=0.05)
    with pytest.raises(SourceError, match=r"no hostengine at 127\.0\.0\.1:5555") as caught:
        driver.read(0.0)
    assert "systemctl start nvidia-dcgm" in caught.value.remedy
    assert driver.report.open_handles == 0


@pytest.mark.parametrize(
    ("address", "answers"),
    [("node-7:5555", "node-7"), ("node-7", "node-7"), ("unix:/run/dcgm.sock", "/run/dcgm.sock"), ("embedded", "none")],
)
def test_ways_to_connect(drive: Drive, address: str, answers: str) -> None:
    driver = drive(node(gpu(), address=answers), address=address)
    assert values(driver.run(0.0, 2.0)[-1])["sm"] == 0.98
    assert driver.batches[-1].details["address"] == address
    driver.source.close()
    report = driver.report
    assert (report.open_handles, report.open_groups, report.open_field_groups, report.open_watches) == (0, 0, 0, 0)


def test_the_hostengine_of_another_address_is_not_ours(drive: Drive) -> None:
    with pytest.raises(SourceError, match="no hostengine at elsewhere"):
        drive(node(gpu(), address="node-7"), address="elsewhere", timeout=0.05).read(0.0)


def test_embedded_that_does_not_start(drive: Drive) -> None:
    fault = failing("dcgmStartEmbedded", Code.INSUFFICIENT_DRIVER_VERSION, limit=1)
    driver = drive(node(gpu(), call_faults=(fault,)), address="embedded")
    with pytest.raises(SourceError, match="driver is too old") as caught:
        driver.read(0.0)
    assert "upgrade" in caught.value.remedy
    assert values(driver.run(1.0, 3.0)[-1])["sm"] == 0.98


@pytest.mark.parametrize("address", ["embedded", "localhost"])
def test_a_connection_that_is_given_up_is_opened_again(drive: Drive, address: str) -> None:
    fault = failing("dcgmGetLatestValues_v2", Code.TIMEOUT, 2.5, 3.5)
    driver = drive(node(gpu(), call_faults=(fault,)), address=address)
    driver.run(0.0, 2.0)
    with pytest.raises(SourceError, match="in time"):
        driver.read(3.0)
    assert driver.report.open_handles == 0
    assert values(driver.run(4.0, 6.0)[-1])["sm"] == 0.98
    assert driver.report.open_groups == 1 + 1


def test_a_second_embedded_one_in_this_process_is_refused(drive: Drive, bindings: Bindings) -> None:
    drive(node(gpu()), address="embedded").read(0.0)
    other = DcgmSource("embedded", bindings=bindings, interval=1.0)
    with pytest.raises(SourceError, match="already runs in this process"):
        other.read(0.0)


def test_everything_is_given_back(drive: Drive) -> None:
    driver = drive(node(gpu(0), mig_gpu(1), a100(2)))
    driver.run(0.0, 3.0)
    assert driver.report.open_watches > 100
    driver.source.close()
    report = driver.report
    assert (report.open_handles, report.open_groups, report.open_field_groups, report.open_watches) == (0, 0, 0, 0)


def test_reading_goes_on_after_a_close(drive: Drive) -> None:
    """The sampler closes once; `doctor` may have a source of its own in the same process."""
    driver = drive(node(gpu()))
    driver.run(0.0, 2.0)
    driver.source.close()
    assert values(driver.run(3.0, 5.0)[-1])["sm"] == 0.98


def test_long_runs_leave_nothing_behind(drive: Drive) -> None:
    driver = drive(node(gpu(), mig_gpu(1)))
    driver.run(0.0, 10.0)
    before = driver.report
    driver.run(11.0, 600.0)
    after = driver.report
    for name in ("open_handles", "open_groups", "open_field_groups", "open_watches"):
        assert getattr(after, name) == getattr(before, name), name
    assert after.kept_samples < 200 * after.open_watches
    assert after.called("dcgmGetDeviceAttributes") < 2 * 65


# ---- a hostengine that restarts ----


def test_counters_go_on_when_the_hostengine_restarts(drive: Drive) -> None:
    observer = Observer(drive(node(gpu(), gone=(Window(20.5, 31.5),)), timeout=0.02))
    before = observer.until(20.0)[board()]
    during = observer.until(30.0)[board()]
    assert during.profiling is ProfilingState.STALE
    assert during.means == {}
    assert during.totals.seconds == before.totals.seconds
    assert observer.errors[0].startswith("lost the hostengine at 127.0.0.1:5555: dcgm")
    assert observer.errors[0].endswith("the hostengine cannot be reached (DCGM code -21)")
    assert set(observer.errors[1:]) == {"cannot connect to DCGM: no hostengine at 127.0.0.1:5555"}
    after = observer.until(60.0)[board()]
    assert after.profiling is ProfilingState.OK
    observed = before.totals.observed["sm"] + (60 - 32)
    assert after.totals.observed["sm"] == pytest.approx(observed, abs=2.0)
    assert after.totals.seconds["sm"] == pytest.approx(0.98 * after.totals.observed["sm"])
    assert after.totals.amounts["energy"] == pytest.approx(612.5 * 60, rel=0.01)
    assert after.totals.amounts["pcie_transmit"] == pytest.approx(3e9 * after.totals.observed["pcie_transmit"])
    assert observer.driver.report.open_handles == 1
    assert observer.driver.report.open_groups == 1 + 1


def test_no_interval_reaches_across_a_restart(drive: Drive) -> None:
    driver = drive(node(gpu(), gone=(Window(5.5, 7.5),)), timeout=0.02)
    driver.run(0.0, 5.0)
    for at in (6.0, 7.0):
        with pytest.raises(SourceError):
            driver.read(at)
    driver.run(8.0, 12.0)
    pieces = [span for batch in driver.batches for span in spans(of(batch, "sm"))]
    assert max(end - start for start, end, _ in pieces) == pytest.approx(1.1)
    assert [piece[0] for piece in pieces if piece[0] > 5] == pytest.approx([8.0, 9.1, 10.2])


# ---- a hostengine that hangs ----


def test_a_call_that_comes_back_late_loses_nothing(drive: Drive) -> None:
    """It takes long, and then answers as if nothing had been: the samples of all that time are there."""
    driver = drive(node(gpu(), call_faults=(hanging("dcgmGetLatestValues_v2", 3.5, 90.0),)))
    driver.run(0.0, 3.0)
    clock = driver.playing.clock
    assert clock is not None
    clock.set(4.0)
    threading.Thread(target=_release, args=(driver, 90.0)).start()
    batch = driver.source.read(4.0 + SHIFT)
    assert batch.end == 90.0 + SHIFT
    pieces = spans(of(batch, "sm"))
    assert (pieces[0][0], pieces[-1][1]) == (2.2, 89.1)
    assert len(pieces) == 79
    assert sum((end - start) * value for start, end, value in pieces) == pytest.approx(0.98 * 86.9)
    assert spans(of(driver.read(91.0), "sm")) == [(89.1, 90.2, 0.98)]


def _release(driver: Driver, at: float) -> None:
    """Sets the clock when a call hangs."""
    assert driver.playing.clock is not None
    while driver.report.hanging == 0:
        time.sleep(0.001)
    driver.playing.clock.set(at)


def test_a_hostengine_that_does_not_answer_is_given_up_and_found_again(drive: Drive) -> None:
    scenario = node(gpu(), stopped=(Window(5.0, 100.0),), request_timeout=0.05)
    driver = drive(scenario)
    driver.run(0.0, 4.0)
    with pytest.raises(SourceError, match="did not answer in time"):
        driver.read(6.0)
    with pytest.raises(SourceError, match="does not answer"):
        driver.read(7.0)
    assert driver.report.open_handles == 0
    driver.run(101.0, 103.0)
    assert values(driver.batches[-1])["sm"] == 0.98
    assert driver.report.open_groups == 1 + 1


# ---- what fails only in part ----


def test_one_gpu_that_fails_costs_the_others_nothing(drive: Drive) -> None:
    faults = (failing("dcgmGetDeviceAttributes", Code.GPU_IS_LOST, 3.0, 90.0, gpu=0),)
    driver = drive(node(gpu(0), gpu(1), call_faults=faults))
    driver.run(0.0, 65.0)  # each GPU is asked once a minute
    batch = driver.batches[-1]
    assert [device.entity for device in batch.devices] == [board(1)]
    assert values(batch, board(1))["sm"] == 0.98
    (problem,) = [problem for problem in batch.problems if problem.entity == board(0)]
    assert board(0).uuid in problem.what
    assert "fallen off the bus" in problem.why
    assert "Xid 79" in problem.remedy
    driver.run(66.0, 110.0)
    assert values(driver.batches[-1], board(0))["sm"] == 0.98


@pytest.mark.parametrize("function", ["dcgmWatchFields", "dcgmGroupAddEntity", "dcgmGroupCreate"])
def test_a_gpu_whose_watches_are_refused_is_tried_again(drive: Drive, function: str) -> None:
    driver = drive(node(gpu(), call_faults=(failing(function, Code.MAX_LIMIT, end=5.0),)))
    batch = driver.read(0.0)
    assert [device.entity for device in batch.devices] == [board()]
    assert batch.devices[0].fields == frozenset()
    (problem,) = [problem for problem in batch.problems if problem.entity]
    assert "no more room for groups" in problem.why
    driver.run(1.0, 20.0)
    assert values(driver.batches[-1])["sm"] == 0.98
    assert [problem for problem in driver.batches[-1].problems if problem.entity] == []
    assert driver.report.open_groups == 1 + 1


def test_a_lost_gpu_is_named_and_comes_back(drive: Drive) -> None:
    lost = dataclasses.replace(losing(0, 5.0), window=Window(5.0, 40.0))
    observer = Observer(drive(node(gpu(0), gpu(1), value_faults=(lost,))))
    views = observer.until(12.0)
    assert not views[board(0)].present
    assert views[board(1)].means["sm"] == pytest.approx(0.98)
    (problem,) = [p for p in observer.driver.batches[-1].problems if p.entity == board(0)]
    assert "it is lost" in problem.why
    views = observer.until(70.0)
    assert views[board(0)].present
    assert views[board(0)].means["sm"] == pytest.approx(0.98)
    assert views[board(0)].totals.observed["sm"] < 40
    assert observer.driver.report.open_groups == 2 + 1


def test_a_gpu_that_is_taken_away_and_one_that_is_added(drive: Drive) -> None:
    away = dataclasses.replace(gpu(0), present=(Window(end=15.0),))
    added = dataclasses.replace(gpu(1), present=(Window(15.0),))
    driver = drive(node(away, added))
    assert [device.entity for device in driver.run(0.0, 14.0)[-1].devices] == [board(0)]
    driver.run(15.0, 40.0)
    assert [device.entity for device in driver.batches[-1].devices] == [board(1)]
    assert values(driver.batches[-1])["sm"] == 0.98
    assert driver.report.open_groups == 1 + 1


def test_a_gpu_that_dcgm_does_not_support(drive: Drive) -> None:
    driver = drive(node(dataclasses.replace(gpu(0), supported=False), gpu(1)))
    batch = driver.run(0.0, 2.0)[-1]
    assert {device.entity: bool(device.fields) for device in batch.devices} == {board(0): False, board(1): True}
    (problem,) = [problem for problem in batch.problems if problem.entity == board(0)]
    assert "does not support this GPU" in problem.why


def test_a_field_with_an_error_of_its_own(drive: Drive) -> None:
    driver = drive(node(gpu(), value_faults=(failing_rows(155, Code.NO_PERMISSION, 2.0),)))
    driver.run(0.0, 5.0)
    assert absences(driver.batches[-1]) == {"power": Absence.NOT_PERMITTED}


# ---- releases ----


def test_library_and_hostengine_are_named(drive: Drive) -> None:
    batch = drive(node(gpu(), version=(4, 5, 3))).read(0.0)
    assert batch.details["library"] == batch.details["hostengine"] == "4.5.3"


def test_structs_of_another_release(drive: Drive) -> None:
    driver = drive(node(gpu(), call_faults=(failing("dcgmGetAllDevices", Code.VER_MISMATCH),)))
    with pytest.raises(SourceError, match="releases that do not fit") as caught:
        driver.read(0.0)
    assert "--dcgm.bindings" in caught.value.remedy


def test_a_library_that_cannot_be_loaded(
    bindings: Bindings, play_scenario: PlayScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    play_scenario(node(gpu()))
    structs = bindings.structs

    def fail(path: str | None) -> None:
        raise structs.DCGMError(structs.DCGM_ST_LIBRARY_NOT_FOUND)

    monkeypatch.setattr(structs, "_dcgmInit", fail)
    source = DcgmSource("localhost", bindings=bindings, interval=1.0)
    with pytest.raises(SourceError, match=r"library .* was not found") as caught:
        source.read(0.0)
    assert "LD_LIBRARY_PATH" in caught.value.remedy
    source.close()


def test_reading_does_not_touch_what_kills_a_hostengine(drive: Drive) -> None:
    """A live read of a profiling field aborts the player, as it ends a hostengine: looks only at names and numbers."""
    driver = drive(node(gpu(0), mig_gpu(1)))
    driver.run(0.0, 25.0)
    assert isinstance(driver, Driver)
    assert driver.report.called("dcgmEntitiesGetLatestValues") > 4
