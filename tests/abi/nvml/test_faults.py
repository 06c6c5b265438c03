"""What goes wrong in the player: errors, hangs, GPUs that come and go, Xids."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from ..scenarios.nodes import (
    h100_node,
)
from .codes import Code
from .happenings import delaying, failing, hanging, xid
from .meeting import Run, h100, one, run_python
from .playing import play
from .scenario import Scenario, steps

# ---- faults ----


def test_errors_of_one_gpu_in_a_window_of_time(run: Run) -> None:
    faults = (
        failing("*", Code.GPU_IS_LOST, gpu="gpu1", start=10, end=20),
        failing("nvmlDeviceGetPowerUsage", Code.NO_PERMISSION, limit=1),
    )
    result = run(
        replace(h100_node(2), faults=faults),
        """
        first, second = [n.nvmlDeviceGetHandleByIndex(i) for i in range(2)]
        limited = [code(n.nvmlDeviceGetPowerUsage, first) for _ in range(3)]
        states = []
        for at in (9.9, 10.0, 19.9, 20.0):
            set_clock(at)
            states.append([code(n.nvmlDeviceGetName, first), code(n.nvmlDeviceGetName, second),
                           code(n.nvmlDeviceGetHandleByIndex, 0), code(n.nvmlDeviceGetHandleByIndex, 1),
                           n.nvmlDeviceGetCount()])
        result = [limited, states]
        """,
    )
    good, bad = [0, 0, 0, 0, 2], [0, 15, 0, 15, 2]
    assert result == [[4, 0, 0], [good, bad, bad, good]]


def test_a_driver_that_comes_up_later(player: Path, tmp_path: Path) -> None:
    faults = (failing("nvmlInit*", Code.DRIVER_NOT_LOADED, end=30),)
    playing = play(replace(h100_node(1), faults=faults), player, tmp_path, start=0.0)
    assert playing.clock is not None
    script = "import pynvml; pynvml.nvmlInit()"
    command = [sys.executable, "-c", script]
    assert b"DriverNotLoaded" in subprocess.run(command, env=playing.environment(), stderr=-1, check=False).stderr
    playing.clock.set(30.0)
    subprocess.run(command, env=playing.environment(), check=True)


def test_a_call_hangs_until_its_time_has_come(run: Run) -> None:
    faults = (hanging("nvmlDeviceGetPowerUsage", gpu="gpu0", start=5, end=6),)
    result = run(
        one(h100(), faults=faults),
        """
        device = n.nvmlDeviceGetHandleByIndex(0)
        set_clock(5.0)
        answers = []
        thread = threading.Thread(target=lambda: answers.append(n.nvmlDeviceGetPowerUsage(device)))
        thread.start()
        while player.honest_test_hanging() == 0:
            time.sleep(0.001)
        other = n.nvmlDeviceGetTemperature(device, 0)
        time.sleep(0.05)
        still = list(answers)
        set_clock(6.0)
        thread.join(10)
        result = [other, still, answers, player.honest_test_hanging()]
        """,
    )
    assert result == [29, [], [68_570], 0]


def test_a_call_that_never_returns_does_not_keep_the_process(player: Path, tmp_path: Path) -> None:
    playing = play(one(h100(), faults=(hanging("nvmlDeviceGetPowerUsage"),)), player, tmp_path)
    result = run_python(
        playing,
        """
        device = n.nvmlDeviceGetHandleByIndex(0)
        threading.Thread(target=n.nvmlDeviceGetPowerUsage, args=(device,), daemon=True).start()
        while player.honest_test_hanging() == 0:
            time.sleep(0.001)
        result = "out"
        """,
    )
    assert result == "out"
    assert playing.report().hanging == 1


def test_slow_calls(run: Run) -> None:
    result = run(
        one(h100(), faults=(delaying("nvmlDeviceGetName", 0.05),)),
        """
        device = n.nvmlDeviceGetHandleByIndex(0)
        begin = time.monotonic()
        n.nvmlDeviceGetName(device)
        result = time.monotonic() - begin >= 0.05
        """,
    )
    assert result is True


# ---- GPUs come and go ----

_LIST = """
def uuids():
    found = []
    for index in range(n.nvmlDeviceGetCount()):
        try:
            found.append(n.nvmlDeviceGetUUID(n.nvmlDeviceGetHandleByIndex(index))[11:12])
        except n.NVMLError_GpuIsLost:
            found.append("lost")
    return found
"""


def _moving(*, live: bool) -> Scenario:
    node = h100_node(3)
    one_, two, three = node.gpus
    gpus = (
        one_,
        replace(two, present=steps((0, 1), (10, 0), (30, 1))),
        replace(three, present=steps((0, 0), (20, 1))),
    )
    orders = ((0.0, ("gpu0", "gpu1", "gpu2")), (30.0, ("gpu2", "gpu1", "gpu0")))
    return replace(node, gpus=gpus, orders=orders, live_enumeration=live)


def test_a_list_made_at_initialization(run: Run) -> None:
    result = run(
        _moving(live=False),
        _LIST
        + """
result = []
for at in (0.0, 10.0, 20.0, 30.0):
    set_clock(at)
    result.append(uuids())
n.nvmlShutdown()
n.nvmlInit()
result.append(uuids())
""",
    )
    assert result == [["0", "1"], ["0", "lost"], ["0", "lost"], ["0", "1"], ["2", "1", "0"]]


def test_a_list_that_is_always_new(run: Run) -> None:
    result = run(
        _moving(live=True),
        _LIST
        + """
device = n.nvmlDeviceGetHandleByIndex(1)
result = []
for at in (0.0, 10.0, 20.0, 30.0):
    set_clock(at)
    result.append([uuids(), code(n.nvmlDeviceGetIndex, device)])
result.append(n.nvmlDeviceGetIndex(n.nvmlDeviceGetHandleByIndex(2)))
""",
    )
    assert result == [
        [["0", "1"], 0],
        [["0"], Code.GPU_IS_LOST],
        [["0", "2"], Code.GPU_IS_LOST],
        [["2", "1", "0"], 0],
        2,
    ]


def test_a_lost_gpu_stays_listed(run: Run) -> None:
    gpu = h100(lost=steps((0, 0), (10, 1)))
    result = run(
        one(gpu),
        """
        device = n.nvmlDeviceGetHandleByIndex(0)
        set_clock(10.0)
        result = [n.nvmlDeviceGetCount(), code(n.nvmlDeviceGetHandleByIndex, 0), code(n.nvmlDeviceGetName, device)]
        """,
    )
    assert result == [1, 15, 15]


# ---- events ----


def test_xids_are_delivered_once_and_in_order(run: Run) -> None:
    events = (xid(5, "gpu1", 79), xid(3, "gpu0", 31, instance=2, compute=0), xid(1, "gpu0", 13), xid(9, "gpu0", 13))
    result = run(
        replace(h100_node(2), events=events),
        """
        first, second = [n.nvmlDeviceGetHandleByIndex(i) for i in range(2)]
        set_clock(2.0)
        waiting = n.nvmlEventSetCreate()
        for device in (first, second):
            n.nvmlDeviceRegisterEvents(device, n.nvmlEventTypeXidCriticalError, waiting)
        def next_event():
            try:
                data = n.nvmlEventSetWait_v2(waiting, 10)
            except n.NVMLError_Timeout:
                return None
            return [n.nvmlDeviceGetIndex(data.device), data.eventType, data.eventData, data.gpuInstanceId]
        result = [next_event()]
        set_clock(6.0)
        result += [next_event(), next_event(), next_event()]
        def later():
            time.sleep(0.05)
            set_clock(9.0)
        threading.Thread(target=later).start()
        begin = time.monotonic()
        data = n.nvmlEventSetWait_v2(waiting, 10_000)
        result += [[data.eventData, time.monotonic() - begin < 5], n.nvmlDeviceGetSupportedEventTypes(first) & 8,
                   code(n.nvmlDeviceRegisterEvents, first, 1 << 40, waiting), player.honest_test_open_event_sets()]
        n.nvmlEventSetFree(waiting)
        result += [player.honest_test_open_event_sets(), code(n.nvmlEventSetFree, waiting)]
        """,
    )
    none = 0xFFFFFFFF
    assert result == [None, [0, 8, 31, 2], [1, 8, 79, none], None, [13, True], 8, 3, 1, 0, 2]
