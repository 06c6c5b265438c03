"""What calls ask of a hostengine: counted as libdcgm would ask, and paid for where requests shall cost something."""

import dataclasses
import time

import psutil

from .conftest import Start
from .meeting import run_python
from .playing import Playing
from .samples import h100, one
from .scenario import Scenario

TWO_GPUS = Scenario((h100(0), h100(1)))

WATCHED = """
    h = connect()
    group, fields = watched(h, [(1, 0), (1, 1)], [203, 155, 1002])
    set_clock(5)
"""


def lives(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def requests(playing: Playing, script: str) -> dict[str, int]:
    """Those that were made, by function."""
    run_python(playing, WATCHED + script)
    report = playing.report()
    assert report.requests == sum(report.requests_by.values())
    return {function: count for function, count in report.requests_by.items() if count}


def test_values_since_are_asked_for_field_by_field(start: Start) -> None:
    script = """
    result = [len(since(h, group, fields)[0]), len(since(h, group, fields)[0])]
    """
    made = requests(start(TWO_GPUS), script)
    assert made["dcgmGetValuesSince_v2"] == 2 * (2 + 2 * 3)  # what is in both groups, then each field of each GPU


def test_a_callback_that_stops_saves_the_requests_behind_it(start: Start) -> None:
    script = """
    taken = []
    stop = a.dcgmFieldValueEntityEnumeration_f(lambda *row: taken.append(row[1]) or int(len(taken) > 6))
    a.dcgmGetValuesSince_v2(h, group, fields, 0, stop, None)
    result = len(taken)
    """
    playing = start(TWO_GPUS)
    assert requests(playing, script)["dcgmGetValuesSince_v2"] == 2 + 2  # six samples of the first field


def test_values_since_of_unknown_groups_end_early(start: Start) -> None:
    script = """
    nothing = a.dcgmFieldValueEntityEnumeration_f(lambda *row: 0)
    result = [code(a.dcgmGetValuesSince_v2, h, group, 99, 0, nothing, None),
              code(a.dcgmGetValuesSince_v2, h, 99, fields, 0, nothing, None)]
    """
    assert requests(start(TWO_GPUS), script)["dcgmGetValuesSince_v2"] == 1 + 2


def test_latest_values_are_one_request_whatever_they_are_of(start: Start) -> None:
    script = """
    each = a.dcgmFieldValueEntityEnumeration_f(lambda *row: 0)
    a.dcgmGetLatestValues_v2(h, group, fields, each, None)
    result = [latest(h, [(1, 0), (1, 1)], [203, 155, 1002]), a.dcgmEntityGetLatestValues(h, 1, 0, [203, 155])[0].status]
    """
    made = requests(start(TWO_GPUS), script)
    functions = ("dcgmGetLatestValues_v2", "dcgmEntitiesGetLatestValues", "dcgmEntityGetLatestValues")
    assert [made[function] for function in functions] == [1, 1, 1]


def test_other_calls_are_one_request_each_or_the_librarys_own(start: Start) -> None:
    script = """
    a.dcgmGetAllDevices(h)
    a.dcgmGetDeviceAttributes(h, 0)
    a.dcgmGetGpuInstanceHierarchy(h)
    a.dcgmVersionInfo()
    f.DcgmFieldGetById(203)
    code(a.dcgmGetDeviceAttributes, h, 9)
    a.dcgmUnwatchFields(h, group, fields)
    a.dcgmDisconnect(h)
    result = a.dcgmShutdown()
    """
    assert requests(start(TWO_GPUS), script) == {
        "dcgmConnect_v2": 2,  # the version and the login
        "dcgmGroupCreate": 1,
        "dcgmGroupAddEntity": 2,
        "dcgmFieldGroupCreate": 1,
        "dcgmWatchFields": 1,
        "dcgmGetAllDevices": 1,
        "dcgmGetDeviceAttributes": 2,
        "dcgmGetGpuInstanceHierarchy": 1,
        "dcgmUnwatchFields": 1,
    }


READ = """
    import psutil
    def standins():
        return [child.pid for child in psutil.Process().children() if child.name().startswith("honest-test")]
    before = standins()
    h = connect()
    group, fields = watched(h, [(1, 0), (1, 1)], [203, 155, 1002])
    set_clock(5)
    rows = since(h, group, fields)
    values = latest(h, [(1, 0), (1, 1)], [203, 155, 1002])
    attributes = a.dcgmGetDeviceAttributes(h, 1).identifiers.uuid
    missing = code(a.dcgmGetDeviceAttributes, h, 9)
    during = standins()
"""


def test_a_cost_changes_no_answer(start: Start) -> None:
    script = READ + "    result = [rows, values, attributes, missing]"
    plain = start(TWO_GPUS)
    costed = dataclasses.replace(start(TWO_GPUS), costed=True)
    assert run_python(costed, script) == run_python(plain, script)
    assert costed.report().requests_by == plain.report().requests_by


def test_the_cost_is_paid_to_a_child_process_that_ends_with_its_parent(start: Start) -> None:
    script = (
        READ
        + """
    pid, = during
    for _ in range(20):
        since(h, group, fields)
    used = psutil.Process(pid).cpu_times()
    result = [before, pid, used.user + used.system]
"""
    )
    playing = dataclasses.replace(start(TWO_GPUS), costed=True)
    result = run_python(playing, script)
    assert isinstance(result, list)
    before, pid, used = result
    assert before == []
    assert used >= 0.01  # 160 requests of at least 0.13 ms
    deadline = time.monotonic() + 5
    while lives(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not lives(pid)


def test_shutdown_ends_it_and_the_next_connection_starts_another(start: Start) -> None:
    script = (
        READ
        + """
    a.dcgmShutdown()
    after = standins()
    a.dcgmInit()
    again = a.dcgmGetAllDevices(connect())
    result = [len(during), after, again, len(standins()), during != standins()]
"""
    )
    playing = dataclasses.replace(start(TWO_GPUS), costed=True)
    assert run_python(playing, script) == [1, [], [0, 1], 1, True]


def test_two_threads_take_turns(start: Start) -> None:
    script = (
        READ
        + """
    seen = []
    def ask():
        for _ in range(50):
            seen.append(a.dcgmGetAllDevices(h))
    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads: thread.start()
    for thread in threads: thread.join(20)
    result = [len(seen), seen[0]]
"""
    )
    playing = dataclasses.replace(start(TWO_GPUS), costed=True)
    assert run_python(playing, script) == [200, [0, 1]]


def test_an_embedded_engine_costs_nothing(start: Start) -> None:
    script = """
    import psutil
    e = a.dcgmStartEmbedded(s.DCGM_OPERATION_MODE_AUTO)
    result = [a.dcgmGetAllDevices(e), len(psutil.Process().children())]
    """
    playing = dataclasses.replace(start(one(h100())), costed=True)
    assert run_python(playing, script) == [[0], 0]
