"""Profiling that is refused, contested, paused, stuck or silent: what is said, how it ends (field cases 18 to 29)."""

import json
from collections.abc import Callable

import pytest

from exporter.fields import PROFILING
from exporter.model import Absence
from exporter.trust import THRESHOLDS, ProfilingState
from tests.abi.dcgm.codes import Code
from tests.abi.dcgm.happenings import Cure, Lock, ValueFault, blanking, failing, silencing, sticking
from tests.abi.dcgm.meeting import process
from tests.abi.dcgm.offers import A100_GROUPS, MetricGroup, Module, NoProfiling
from tests.abi.dcgm.scenario import Gpu
from tests.abi.dcgm.values import Window, steps

from .conftest import Drive
from .driving import absences, of, spans, values
from .nodes import a100, board, geforce, gpu, node, with_fields
from .observing import Observer

ALL_PROFILING = (1001, 1096)


@pytest.mark.parametrize("code", [Code.BADPARAM, Code.PROFILING_NOT_SUPPORTED, Code.NOT_SUPPORTED])
def test_a_refused_field_does_not_take_the_others_with_it(drive: Drive, code: Code) -> None:
    """The hostengine takes back the whole watch, with the fields that it would give."""
    groups = (*A100_GROUPS, MetricGroup(5, 0, (1016, 1013), withheld=True))
    scenario = node(a100(profiling=Module(groups, combination=None, field=code)))
    driver = drive(scenario)
    batch = driver.run(0.0, 3.0)[-1]
    assert set(values(batch)) & set(PROFILING) == set(PROFILING) - {"integer"}
    assert absences(batch)["integer"] is absences(batch)["tensor_imma"]
    assert absences(batch)["integer"] is (Absence.ERROR if code == Code.BADPARAM else Absence.NOT_SUPPORTED)
    watched, read = 5, 2  # one of the three that are read is a watch's, too
    assert driver.report.open_field_groups == watched + read


def test_what_one_gpu_refuses_is_not_taken_from_another(drive: Drive) -> None:
    """They share the group of fields in the hostengine."""
    groups = (*A100_GROUPS, MetricGroup(5, 0, (1016,)))
    lying = (*A100_GROUPS, MetricGroup(5, 0, (1016,), withheld=True))
    first, second = (a100(number, Module(of, combination=None)) for number, of in enumerate((groups, lying)))
    driver = drive(node(first, second))
    driver.read(0.0)
    watches = driver.report.called("dcgmWatchFields")
    batch = driver.run(1.0, 5.0)[-1]
    assert values(batch, board(0))["integer"] == 0.06
    assert "integer" not in values(batch, board(1))
    assert values(batch, board(1))["sm"] == 0.98
    assert driver.report.called("dcgmWatchFields") == watches


def test_a_refusal_that_was_none_of_the_fields(drive: Drive) -> None:
    """Each is taken alone: then they are taken together, too."""
    driver = drive(node(a100(), call_faults=(failing("dcgmWatchFields", Code.BADPARAM, limit=1),)))
    batch = driver.run(0.0, 3.0)[-1]
    assert values(batch)["busy"] == 1.0
    assert values(batch)["sm"] == 0.98


def test_a_combination_that_does_not_fit_in_one_pass(drive: Drive) -> None:
    driver = drive(node(a100(profiling=Module(A100_GROUPS))))
    batch = driver.run(0.0, 3.0)[-1]
    assert set(values(batch)) & set(PROFILING) == set(PROFILING) - {"fp64", "fp16", "integer"}
    assert {"pcie_transmit", "nvlink_receive"} <= set(values(batch))
    assert absences(batch)["fp64"] is Absence.NOT_SUPPORTED
    (problem,) = [problem for problem in batch.problems if problem.entity == board()]
    assert "fp64" in problem.what
    assert "fp16" in problem.what
    assert "one pass" in problem.why
    (device,) = batch.devices
    assert "fp64" not in device.fields


@pytest.mark.parametrize(
    ("profiling", "loaded", "state", "words"),
    [
        (NoProfiling(), True, ProfilingState.UNSUPPORTED, "no profiling for this GPU"),
        (NoProfiling(), False, ProfilingState.UNSUPPORTED, "module is not loaded"),
        (NoProfiling(Code.REQUIRES_ROOT), True, ProfilingState.NOT_PERMITTED, "as root"),
        (NoProfiling(Code.NO_PERMISSION), True, ProfilingState.NOT_PERMITTED, "not permitted"),
        (NoProfiling(Code.IN_USE), True, ProfilingState.LOCKED_BY_OTHER, "another client"),
        (NoProfiling(Code.PROFILING_LIBRARY_ERROR), True, ProfilingState.LOCKED_BY_OTHER, "another client"),
        (NoProfiling(Code.PAUSED), True, ProfilingState.PAUSED, "paused"),
        (Module(A100_GROUPS, refusal=Code.REQUIRES_ROOT), True, ProfilingState.NOT_PERMITTED, "as root"),
    ],
)
def test_why_there_is_no_measurement(
    drive: Drive, profiling: NoProfiling | Module, loaded: bool, state: ProfilingState, words: str
) -> None:
    observer = Observer(drive(node(geforce(profiling=profiling), module_loaded=loaded)))
    view = observer.until(5.0)[board()]
    assert view.profiling is state
    assert view.means["busy"] == 1.0
    assert not set(view.means) & set(PROFILING)
    (problem,) = [p for p in observer.driver.batches[-1].problems if p.entity == board()]
    assert words in problem.why
    assert problem.remedy or state is ProfilingState.UNSUPPORTED


def test_refusals_are_asked_again_and_not_at_every_read(drive: Drive) -> None:
    driver = drive(node(geforce()))
    driver.run(0.0, 300.0)
    assert 3 <= driver.report.called("dcgmProfGetSupportedMetricGroups") <= 8


@pytest.mark.parametrize("code", [Code.PROFILING_LIBRARY_ERROR, Code.IN_USE])
def test_locked_by_another_client_until_it_ends(drive: Drive, code: Code) -> None:
    """Nsight, or a second hostengine (field case 28)."""
    observer = Observer(drive(node(a100(), locks=(Lock(Window(end=25.0), code),))))
    view = observer.until(20.0)[board()]
    assert view.profiling is ProfilingState.LOCKED_BY_OTHER
    assert view.honest is None
    assert "sm" not in view.means
    assert view.means["busy"] == 1.0
    view = observer.until(60.0)[board()]
    assert view.profiling is ProfilingState.OK
    assert view.means["sm"] == pytest.approx(0.98)
    assert [p for p in observer.driver.batches[-1].problems if p.entity] == []


def test_paused_and_resumed_by_somebody(drive: Drive) -> None:
    observer = Observer(drive(node(a100(), paused=(Window(10.0, 40.0),))))
    assert observer.state(9.0, board()) is ProfilingState.OK
    assert absences(observer.driver.read(12.0))["sm"] is Absence.PAUSED
    watches = observer.driver.report.called("dcgmWatchFields")
    view = observer.until(35.0)[board()]
    assert observer.driver.report.called("dcgmWatchFields") == watches
    assert view.profiling is ProfilingState.PAUSED
    assert view.absences["sm"] is Absence.PAUSED
    assert view.means["busy"] == 1.0
    view = observer.until(45.0)[board()]
    assert view.profiling is ProfilingState.OK
    assert view.totals.observed["sm"] == pytest.approx(45 - 30, abs=3 * 1.1)  # three samples


def test_blank_without_a_pause_stays_a_blank(drive: Drive) -> None:
    driver = drive(node(gpu(), value_faults=(blanking(ALL_PROFILING, 3.0, 20.0),)))
    driver.run(0.0, 6.0)
    assert absences(driver.batches[-1])["sm"] is Absence.BLANK


@pytest.mark.parametrize("make", [gpu, a100], ids=["gpm", "module"])
@pytest.mark.parametrize(
    "fault",
    [
        sticking(ALL_PROFILING, 0.0, 10.0, gpu=0, cure=Cure.WATCH),
        blanking(ALL_PROFILING, 10.0, gpu=0, cure=Cure.WATCH),
    ],
    ids=["zero", "blank"],
)
def test_dead_profiling_is_watched_anew(drive: Drive, make: Callable[[int], Gpu], fault: ValueFault) -> None:
    """After an Xid, until somebody watches anew; another GPU of the node goes on meanwhile (field cases 18 to 21)."""
    observer = Observer(drive(node(make(0), make(1), value_faults=(fault,))))
    assert observer.state(10.0, board()) is ProfilingState.OK
    watches = observer.driver.report.called("dcgmWatchFields")
    views = observer.until(30.0)
    assert views[board(0)].profiling is ProfilingState.OK
    assert views[board(0)].means["sm"] == pytest.approx(0.98)
    assert observer.driver.report.called("dcgmWatchFields") == watches + 1
    assert views[board(1)].totals.observed["sm"] == pytest.approx(29.0, abs=2.0)
    assert views[board(0)].totals.observed["sm"] < 28.0


def test_profiling_that_stays_dead_is_watched_anew_ever_less_often(drive: Drive) -> None:
    observer = Observer(drive(node(gpu(), value_faults=(sticking(ALL_PROFILING, 0.0, 10.0),))))
    observer.until(10.0)
    before = observer.driver.report.called("dcgmWatchFields")
    view = observer.until(400.0)[board()]
    assert view.profiling is ProfilingState.STUCK_AT_ZERO
    assert 2 <= observer.driver.report.called("dcgmWatchFields") - before <= 5


def test_an_idle_gpu_is_not_dead(drive: Drive) -> None:
    idle = with_fields(gpu(), {203: 0.0, **dict.fromkeys(range(1001, 1017), 0.0)})
    driver = drive(node(idle))
    driver.read(0.0)
    before = driver.report.called("dcgmWatchFields")
    driver.run(1.0, 60.0)
    assert driver.report.called("dcgmWatchFields") == before


def test_a_claim_that_lags_behind_convicts_nobody(drive: Drive) -> None:
    """At 10 Hz: utilization.gpu looks back for up to a second, so that it is high while nothing runs any more."""
    ends = {field: steps((0.0, 0.5), (10.0, 0.0)) for field in range(1001, 1017)}
    quiet = with_fields(gpu(), {203: steps((0.0, 100.0), (11.0, 0.0)), **ends})
    driver = drive(node(quiet), interval=0.1)
    driver.read(0.0)
    before = driver.report.called("dcgmWatchFields")
    driver.run(0.1, 20.0, 0.1)
    assert driver.report.called("dcgmWatchFields") == before


def test_silent_profiling_is_watched_anew(drive: Drive) -> None:
    fault = silencing(ALL_PROFILING, 10.0, cure=Cure.WATCH)
    driver = drive(node(gpu(), value_faults=(fault,)))
    driver.run(0.0, 40.0)
    assert values(driver.batches[-1])["sm"] == 0.98
    got = [span for batch in driver.batches for span in spans(of(batch, "sm"))]
    assert all(end - start < 1.2 for start, end, _ in got)


def test_dead_means_several_samples() -> None:
    assert THRESHOLDS.dead_reads > 2


def test_somebody_ends_our_watches(drive: Drive) -> None:
    """As an operator can; it is noticed and put right."""
    driver = drive(node(gpu()))
    driver.run(0.0, 5.0)
    node_ = driver.source._node
    assert node_ is not None
    (watched,) = node_._gpus.values()
    for plain in watched._plain:
        assert plain.watch is not None
        node_.session.call("dcgmUnwatchFields", plain.watch._group.handle, plain.watch._fields)
    driver.run(6.0, 20.0)
    assert values(driver.batches[-1])["busy"] == 1.0
    assert values(driver.batches[-1])["sm"] == 0.98
    assert driver.report.open_groups == 1 + 1


def test_pausing_from_another_process(drive: Drive) -> None:
    """As `profiling pause` does it."""
    driver = drive(node(a100()))
    driver.run(0.0, 3.0)
    done = process(driver.playing, "result = a.dcgmProfPause(connect())")
    assert json.loads(done.stdout) == 0, done.stderr
    assert absences(driver.run(4.0, 6.0)[-1])["sm"] is Absence.PAUSED
    done = process(driver.playing, "result = a.dcgmProfResume(connect())")
    assert json.loads(done.stdout) == 0, done.stderr
    assert values(driver.run(7.0, 9.0)[-1])["sm"] == 0.98
