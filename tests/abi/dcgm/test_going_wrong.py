"""What goes wrong, as the player plays it: hostengines that are gone or silent, calls that fail or hang, lost GPUs."""

from .codes import Code
from .happenings import failing, hanging, losing
from .meeting import Run
from .samples import h100, one
from .scenario import Scenario
from .values import Window


def test_only_the_address_of_the_scenario_answers(run: Run) -> None:
    script = """
        connect("node:5555"); connect("node")
        begun = time.monotonic()
        result = [code(connect, "elsewhere:5555", 300), 0.25 < time.monotonic() - begun < 2]
    """
    assert run(one(h100(), address="node"), script) == [Code.CONNECTION_NOT_VALID, True]


def test_killed_hostengine_forgets_everything(run: Run) -> None:
    script = """
        h = connect()
        group, fields = watched(h, [(1, 0)], [203])
        set_clock(10)
        before = [len(since(h, group, fields)[0]), player.honest_test_open_watches()]
        set_clock(20)
        dead = [code(a.dcgmGetAllDevices, h), code(connect, "x", 50), player.honest_test_open_watches()]
        set_clock(30)
        still = code(a.dcgmGetAllDevices, h)
        gone = [a.dcgmDisconnect(h), player.honest_test_open_handles()]
        n = connect()
        late = [code(since, n, group, fields), code(a.dcgmGroupDestroy, n, group),
                code(a.dcgmFieldGroupDestroy, n, fields)]
        group, fields = watched(n, [(1, 0)], [203])
        set_clock(32)
        result = [before, dead, still, gone, late, [row[4] for row in since(n, group, fields)[0]]]
    """
    assert run(one(h100(), gone=(Window(15.0, 25.0),)), script) == [
        [11, 1],
        [Code.CONNECTION_NOT_VALID, Code.CONNECTION_NOT_VALID, 0],
        Code.CONNECTION_NOT_VALID,
        [0, 0],
        [Code.NO_DATA, Code.NOT_CONFIGURED, Code.NO_DATA],
        [30.0, 31.0, 32.0],
    ]


def test_connect_waits_for_a_hostengine_that_comes_back(run: Run) -> None:
    script = """
        threading.Timer(0.1, set_clock, [5.0]).start()
        result = a.dcgmGetAllDevices(connect(timeout=30000))
    """
    assert run(one(h100(), gone=(Window(0.0, 5.0),)), script) == [0]


def test_stopped_hostengine_lets_calls_wait(run: Run) -> None:
    script = """
        h = connect()
        set_clock(10)
        def later(seconds):
            threading.Timer(0.1, set_clock, [seconds]).start()
        later(75)
        timed_out = code(a.dcgmGetAllDevices, h)
        later(200)
        begun = time.monotonic()
        n = connect()
        result = [timed_out, n.value is not None, code(a.dcgmGetAllDevices, n)]
    """
    scenario = one(h100(), stopped=(Window(10.0, 150.0),))
    assert run(scenario, script) == [Code.TIMEOUT, True, 0]


def test_connecting_to_a_stopped_hostengine_succeeds_after_two_silences(run: Run) -> None:
    script = """
        begun = time.monotonic()
        h = connect()
        waited = time.monotonic() - begun
        result = [h.value is not None, 0.3 < waited < 5, code(a.dcgmGetAllDevices, h)]
    """
    scenario = one(h100(), stopped=(Window(),), request_timeout=0.2)
    assert run(scenario, script) == [True, True, Code.TIMEOUT]


def test_hanging_call_leaves_others_alone(run: Run) -> None:
    script = """
        h = connect()
        done = []
        thread = threading.Thread(target=lambda: done.append(a.dcgmGetAllDevices(h)))
        thread.start()
        while player.honest_test_hanging() == 0:
            time.sleep(0.001)
        others = a.dcgmGetAllSupportedDevices(h)
        pending = list(done)
        set_clock(5)
        thread.join(10)
        result = [others, pending, done, player.honest_test_hanging()]
    """
    assert run(one(h100(), call_faults=(hanging("dcgmGetAllDevices", end=5.0),)), script) == [[0], [], [[0]], 0]


def test_failing_calls(run: Run) -> None:
    script = """
        h = connect()
        result = [code(a.dcgmProfGetSupportedMetricGroups, h, gpu) for gpu in (0, 1)]
        result += [code(a.dcgmGroupCreate, h, s.DCGM_GROUP_EMPTY, "g") for _ in range(2)]
        set_clock(10)
        result += [code(a.dcgmProfGetSupportedMetricGroups, h, 0)]
    """
    faults = (
        failing("dcgmProf*", Code.PROFILING_LIBRARY_ERROR, end=10.0, gpu=0),
        failing("dcgmGroupCreate", Code.GENERIC_ERROR, limit=1),
    )
    scenario = Scenario((h100(0), h100(1)), call_faults=faults)
    assert run(scenario, script) == [Code.PROFILING_LIBRARY_ERROR, 0, Code.GENERIC_ERROR, 0, 0]


def test_embedded_that_does_not_start(run: Run) -> None:
    fault = failing("dcgmStartEmbedded", Code.INSUFFICIENT_DRIVER_VERSION)
    script = "result = code(a.dcgmStartEmbedded, 1)"
    assert run(one(h100(), call_faults=(fault,)), script) == Code.INSUFFICIENT_DRIVER_VERSION


def test_lost_gpu_is_listed_and_joins_no_group(run: Run) -> None:
    script = """
        h = connect()
        group, fields = watched(h, [(1, 0)], [203, 1002])
        set_clock(6)
        result = [a.dcgmGetAllDevices(h), a.dcgmGetDeviceAttributes(h, 0).identifiers.uuid, code(group_of, h, (1, 0)),
                  [row[3:] for row in since(h, group, fields, int((wall + 6) * 1e6))[0]]]
    """
    assert run(one(h100(), value_faults=(losing(0, 5.0),)), script) == [
        *([0], "<<<NULL>>>", Code.GPU_IS_LOST),
        [[0, 6.0, 0x7FFFFFFFFFFFFFF0], [0, 6.0, 2.0**47]],
    ]


def test_detached_gpu_is_not_listed(run: Run) -> None:
    script = """
        h = connect()
        first = a.dcgmGetAllDevices(h)
        set_clock(5)
        result = [first, a.dcgmGetAllDevices(h), code(a.dcgmGetDeviceAttributes, h, 0)]
    """
    scenario = Scenario((h100(0, present=(Window(end=5.0),)), h100(1)))
    assert run(scenario, script) == [[0, 1], [1], Code.BADPARAM]
