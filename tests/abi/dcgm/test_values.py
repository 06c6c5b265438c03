"""Watches and their samples, seen through NVIDIA's bindings."""

import json
import signal

import pytest

from .codes import Blank, Code
from .conftest import Start
from .happenings import PROFILING, Cure, Lock, ValueFault, blanking, failing_rows, freezing, silencing, sticking
from .meeting import Run, process
from .offers import Gpm, MetricGroup, Module, NoProfiling
from .samples import a100, h100, mig_instances, one
from .scenario import Scenario
from .values import Counter, Window, steps

INT_BLANK = 0x7FFFFFFFFFFFFFF0
FP_BLANK = 2.0**47


def test_every_sample_is_delivered_once(run: Run) -> None:
    script = """
        h = connect()
        group, fields = watched(h, [(1, 0)], [203, 155], interval=0.5)
        set_clock(2.1)
        first, following = since(h, group, fields)
        nothing, same = since(h, group, fields, following)
        set_clock(3.6)
        second, last = since(h, group, fields, following)
        result = [[row[4] for row in first], following == int((wall + 2.1) * 1e6) + 1, nothing,
                  [[row[2], row[4]] for row in second]]
    """
    times = [0.0, 0.5, 1.0, 1.5, 2.0]
    assert run(one(h100()), script) == [
        times * 2,
        True,
        [[1, 0, 203, Code.NO_DATA, None, INT_BLANK], [1, 0, 155, Code.NO_DATA, None, FP_BLANK]],
        [[203, 2.5], [203, 3.0], [203, 3.5], [155, 2.5], [155, 3.0], [155, 3.5]],
    ]


def test_values_are_means_moments_integrals_and_events(run: Run) -> None:
    script = """
        h = connect()
        set_clock(9)
        group, fields = watched(h, [(1, 0)], [54, 155, 156, 203, 230, 1002, 1009, 1084], interval=2.0)
        set_clock(13)
        result = {}
        for row in since(h, group, fields)[0]:
            result.setdefault(row[2], []).append([row[4], row[5]])
    """
    uuid = "GPU-00000000-0000-0000-0000-000000000000"
    joules = 5e9 + 1e6
    assert run(one(h100()), script) == {
        "54": [[9.0, uuid], [11.0, uuid], [13.0, uuid]],
        "155": [[9.0, 100.0], [11.0, 700.0], [13.0, 700.0]],
        "156": [[9.0, int(joules - 1e5)], [11.0, int(joules + 7e5)], [13.0, int(joules + 21e5)]],
        "203": [[9.0, 0], [11.0, 100], [13.0, 100]],
        "230": [[12.5, 31]],
        "1002": [[9.0, FP_BLANK], [11.0, 0.4], [13.0, 0.8]],
        "1009": [[9.0, INT_BLANK], [11.0, 2**30], [13.0, 2**31]],
        "1084": [[9.0, INT_BLANK], [11.0, round(1.755e9 * 11)], [13.0, round(1.755e9 * 13)]],
    }


def test_a_sequence_of_means_adds_up_exactly(run: Run) -> None:
    script = """
        h = connect()
        group, fields = watched(h, [(1, 0)], [1002], interval=0.1, keep=1000)
        set_clock(60)
        result = sum(row[5] for row in since(h, group, fields)[0][1:]) * 0.1
    """
    shape = steps((0.0, 0.2), (7.03, 0.9), (7.04, 0.1), (33.333, 0.5))
    expected = 0.2 * 7.03 + 0.9 * 0.01 + 0.1 * (33.333 - 7.04) + 0.5 * (60 - 33.333)
    assert run(one(h100(fields={1002: shape})), script) == pytest.approx(expected, rel=1e-9)


def test_the_fastest_client_sets_the_interval(run: Run) -> None:
    script = """
        h, other = connect(), connect()
        group, fields = watched(h, [(1, 0)], [203], interval=1.0)
        set_clock(2)
        watched(other, [(1, 0)], [203], interval=0.5, name="other")
        set_clock(3)
        a.dcgmDisconnect(other)
        set_clock(5)
        result = [row[4] for row in since(h, group, fields)[0]]
    """
    assert run(one(h100()), script) == [0.0, 1.0, 2.0, 2.5, 3.0, 4.0, 5.0]


def test_samples_outlive_their_watch_and_are_pruned(run: Run) -> None:
    script = """
        h = connect()
        group, fields = watched(h, [(1, 0)], [203], keep=10.0)
        set_clock(30)
        kept = [row[4] for row in since(h, group, fields)[0]]
        a.dcgmUnwatchFields(h, group, fields)
        set_clock(35)
        older = [row[4] for row in since(h, group, fields)[0]]
        set_clock(60)
        result = [kept, older, since(h, group, fields)[0], player.honest_test_kept_samples()]
    """
    assert run(one(h100()), script) == [
        [float(time) for time in range(20, 31)],
        [float(time) for time in range(25, 31)],
        [[1, 0, 203, Code.NOT_WATCHED, None, INT_BLANK]],
        0,
    ]


def test_a_long_run_keeps_a_bounded_number_of_samples(run: Run) -> None:
    script = """
        h = connect()
        group, fields = watched(h, [(1, 0)], [1002, 203], interval=0.1, keep=5.0)
        seen, most, following = 0, 0, 0
        for tick in range(1, 2001):
            set_clock(tick)
            rows, following = since(h, group, fields, following)
            seen += len(rows)
            most = max(most, player.honest_test_kept_samples())
        result = [seen, most <= 2 * 51]
    """
    assert run(one(h100()), script) == [2 * 20001, True]


def test_unwatched_unsupported_and_without_data(run: Run) -> None:
    script = """
        h = connect()
        before = latest(h, [(1, 0)], [203, 1002])
        group, fields = watched(h, [(1, 0), (1, 1)], [230, 250, 1003])
        result = [before, latest(h, [(1, 0)], [230, 250, 1003]), latest(h, [(1, 1)], [1003])]
    """
    gpus = (h100(0, fields={}), h100(1, fields={1003: Blank.NOT_PERMITTED}, profiling=Gpm()))
    assert run(Scenario(gpus, first_blank=False), script) == [
        [[Code.NOT_WATCHED, INT_BLANK], [Code.NOT_WATCHED, FP_BLANK]],
        [[0, INT_BLANK + 2], [0, INT_BLANK + 2], [0, FP_BLANK]],
        [[0, FP_BLANK + 3]],
    ]


def test_live_data(run: Run) -> None:
    script = """
        h = connect()
        set_clock(20)
        result = latest(h, [(1, 0)], [203, 155, 54], 1)
    """
    assert run(one(h100()), script) == [[0, 100], [0, 700.0], [0, "GPU-00000000-0000-0000-0000-000000000000"]]


def test_live_profiling_data_ends_the_process(start: Start) -> None:
    done = process(start(one(h100())), "result = latest(connect(), [(1, 0)], [203, 1002], 1)")
    assert done.returncode == -signal.SIGABRT
    assert "1002" in done.stderr


def test_mig_instances_have_what_reaches_them(run: Run) -> None:
    script = """
        h = connect()
        group, fields = watched(h, [(GI, 0), (GI, 1), (1, 0)], [1002, 1009, 203])
        set_clock(1)
        result = [row[:3] + row[5:] for row in since(h, group, fields, int((wall + 1) * 1e6))[0]]
    """
    assert run(one(h100(fields={1009: 1e6}, instances=mig_instances())), script) == [
        *([4, 0, 1002, 0.25], [4, 0, 1009, INT_BLANK], [4, 0, 203, INT_BLANK + 2]),
        *([4, 1, 1002, 0.75], [4, 1, 1009, INT_BLANK], [4, 1, 203, INT_BLANK + 2]),
        *([1, 0, 1002, FP_BLANK], [1, 0, 1009, 1000000], [1, 0, 203, INT_BLANK + 2]),
    ]


def test_native_counters_come_with_their_release(run: Run) -> None:
    script = 'result = code(a.dcgmFieldGroupCreate, connect(), [1084], "native")'
    assert run(one(h100()), script) == 0
    assert run(one(h100(fields={}), version=(4, 5, 3)), script) == Code.BADPARAM


def test_a_counter_begins_again(run: Run) -> None:
    script = """
        h = connect()
        group, fields = watched(h, [(1, 0)], [156])
        set_clock(4)
        result = [row[5] for row in since(h, group, fields)[0]]
    """
    energy = Counter(1000.0, start=500.0, resets=(2.5,))
    assert run(one(h100(fields={156: energy})), script) == [500, 1500, 2500, 500, 1500]


# ---- the profiling module ----


def test_module_has_its_first_value_after_an_interval(run: Run) -> None:
    script = """
        h = connect()
        group, fields = watched(h, [(1, 0)], [1002])
        first = since(h, group, fields)[0]
        set_clock(1)
        result = [first, since(h, group, fields)[0]]
    """
    assert run(one(a100()), script) == [
        [[1, 0, 1002, Code.NO_DATA, None, FP_BLANK]],
        [[1, 0, 1002, 0, 1.0, 0.5]],
    ]


def test_refused_combination_takes_the_whole_watch_back(run: Run) -> None:
    script = """
        h = connect()
        group = group_of(h, (1, 0))
        both = a.dcgmFieldGroupCreate(h, [203, 1002, 1006], "both")
        refused = code(a.dcgmWatchFields, h, group, both, 1000000, 60.0, 0)
        rows = since(h, group, both)[0]
        fits = a.dcgmFieldGroupCreate(h, [1002, 1005, 1001], "fits")
        alone = a.dcgmFieldGroupCreate(h, [1006], "alone")
        result = [refused, [row[3] for row in rows], player.honest_test_open_watches(),
                  code(a.dcgmWatchFields, h, group, fits, 1000000, 60.0, 0),
                  code(a.dcgmWatchFields, h, group, alone, 1000000, 60.0, 0), player.honest_test_open_watches(),
                  a.dcgmUnwatchFields(h, group, fits), code(a.dcgmWatchFields, h, group, alone, 1000000, 60.0, 0)]
    """
    assert run(one(a100()), script) == [
        *(Code.PROFILING_MULTI_PASS, [Code.NOT_WATCHED] * 3, 0, 0, Code.PROFILING_MULTI_PASS, 3, 0, 0),
    ]


@pytest.mark.parametrize(
    ("scenario", "code"),
    [
        (one(a100(profiling=NoProfiling())), Code.PROFILING_NOT_SUPPORTED),
        (one(a100(profiling=NoProfiling()), module_loaded=False), Code.MODULE_NOT_LOADED),
        (one(a100(profiling=Module((), refusal=Code.NO_PERMISSION))), Code.NO_PERMISSION),
        (one(a100(profiling=Module((), refusal=Code.REQUIRES_ROOT))), Code.REQUIRES_ROOT),
        (one(a100(), locks=(Lock(),)), Code.PROFILING_LIBRARY_ERROR),
        (one(a100(), locks=(Lock(code=Code.IN_USE),)), Code.IN_USE),
        (one(h100(), locks=(Lock(),)), 0),
        (one(a100(profiling=Module(()))), Code.PROFILING_NOT_SUPPORTED),
        (one(a100(profiling=Module((MetricGroup(0, 0, (1002,), withheld=True),)))), Code.PROFILING_NOT_SUPPORTED),
    ],
)
def test_refused_profiling(run: Run, scenario: Scenario, code: int) -> None:
    script = """
        h = connect()
        group = group_of(h, (1, 0))
        fields = a.dcgmFieldGroupCreate(h, [203, 1002], "fields")
        result = [code(a.dcgmWatchFields, h, group, fields, 1000000, 60.0, 0), since(h, group, fields)[0][0][3]]
    """
    assert run(scenario, script) == [code, 0 if code == 0 else Code.NOT_WATCHED]


def test_lock_is_over_when_the_other_client_ends(run: Run) -> None:
    script = """
        h = connect()
        group = group_of(h, (1, 0))
        fields = a.dcgmFieldGroupCreate(h, [1002], "fields")
        first = code(a.dcgmWatchFields, h, group, fields, 1000000, 60.0, 0)
        set_clock(5)
        result = [first, code(a.dcgmWatchFields, h, group, fields, 1000000, 60.0, 0)]
    """
    assert run(one(a100(), locks=(Lock(Window(end=5.0)),)), script) == [Code.PROFILING_LIBRARY_ERROR, 0]


def test_pausing_blanks_the_module_and_nothing_else(run: Run) -> None:
    script = """
        h = connect()
        group, fields = watched(h, [(1, 0)], [1002, 203])
        set_clock(1.5); a.dcgmProfPause(h); a.dcgmProfPause(h)
        set_clock(3.5); a.dcgmProfResume(h); a.dcgmProfResume(h)
        set_clock(5)
        result = [row[2:] for row in since(h, group, fields)[0]]
    """
    values = [[1.0, 0.5], [2.0, FP_BLANK], [3.0, FP_BLANK], [4.0, 0.5], [5.0, 0.5]]
    assert run(one(a100()), script) == [
        *([1002, 0, time, value] for time, value in values),
        *([203, 0, float(time), 100] for time in range(6)),
    ]
    script = "h = connect(); result = [code(a.dcgmProfPause, h), code(a.dcgmProfResume, h)]"
    assert run(one(h100()), script) == [Code.NOT_SUPPORTED, Code.NOT_SUPPORTED]


def test_another_process_pauses(start: Start) -> None:
    playing = start(one(a100()))
    assert playing.clock is not None
    done = process(playing, "result = a.dcgmProfPause(connect())")
    assert json.loads(done.stdout) == 0, done.stderr
    script = """
        h = connect()
        group, fields = watched(h, [(1, 0)], [1002])
        set_clock(1)
        result = since(h, group, fields)[0][0][5]
    """
    assert json.loads(process(playing, script).stdout) == FP_BLANK


def test_paused_by_the_scenario_until_somebody_resumes(run: Run) -> None:
    script = """
        h = connect()
        group, fields = watched(h, [(1, 0)], [1002])
        set_clock(3.5)
        a.dcgmProfResume(h)
        set_clock(5)
        result = [row[5] for row in since(h, group, fields)[0]]
    """
    assert run(one(a100(), paused=(Window(1.5),)), script) == [0.5, FP_BLANK, FP_BLANK, 0.5, 0.5]


# ---- faults of values ----


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (blanking(1002, 2.0, 4.0), [0.25, FP_BLANK, FP_BLANK, 0.75, 0.75]),
        (blanking(PROFILING, 2.0, 4.0, kind=Blank.NOT_FOUND), [0.25, FP_BLANK + 1, FP_BLANK + 1, 0.75, 0.75]),
        (sticking(1002, 0.0, 2.0, 4.0), [0.25, 0.0, 0.0, 0.75, 0.75]),
        (freezing(1002, 2.0, 5.0), [0.25, 0.25, 0.25, 0.25, 0.75]),
        (silencing(1002, 2.0, 4.0), [0.25, 0.75, 0.75]),
        (blanking(1002, 2.0, 4.0, gpu=1), [0.25, 0.25, 0.75, 0.75, 0.75]),
        (blanking(1005, 2.0, 4.0), [0.25, 0.25, 0.75, 0.75, 0.75]),
    ],
)
def test_value_faults(run: Run, fault: ValueFault, expected: list[float]) -> None:
    script = """
        h = connect()
        group, fields = watched(h, [(1, 0)], [1002])
        set_clock(5)
        result = [row[5] for row in since(h, group, fields)[0]]
    """
    gpu = a100(fields={1002: steps((0.0, 0.25), (2.0, 0.75))})
    assert run(one(gpu, value_faults=(fault,)), script) == expected


def test_rows_with_a_code(run: Run) -> None:
    script = """
        h = connect()
        group, fields = watched(h, [(1, 0)], [203])
        set_clock(5)
        result = since(h, group, fields, int((wall + 3) * 1e6))[0]
    """
    fault = failing_rows(203, Code.GPU_IS_LOST, 2.5)
    assert run(one(h100(), value_faults=(fault,)), script) == [[1, 0, 203, Code.GPU_IS_LOST, None, INT_BLANK]]


def test_stuck_until_watched_anew_or_resumed(run: Run) -> None:
    script = """
        h = connect()
        group, fields = watched(h, [(1, 0)], [1002, 1005])
        set_clock(3)
        stuck = [row[5] for row in since(h, group, fields)[0]]
        a.dcgmProfPause(h); a.dcgmProfResume(h)
        a.dcgmUnwatchFields(h, group, fields)
        a.dcgmWatchFields(h, group, fields, 1000000, 300.0, 0)
        following = int((wall + 3.5) * 1e6)
        set_clock(5)
        result = [stuck, [row[5] for row in since(h, group, fields, following)[0]]]
    """
    faults = (sticking(1002, 0.0, 2.0, cure=Cure.WATCH), sticking(1005, 0.0, 2.0, cure=Cure.RESUME))
    assert run(one(a100(), value_faults=faults), script) == [[0.5, 0.0, 0.0, 0.4, 0.0, 0.0], [0.5, 0.5, 0.4, 0.4]]
