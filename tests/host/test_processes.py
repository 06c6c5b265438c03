"""Processes that hold GPUs and their children, in a tree written by hand."""

from __future__ import annotations

import builtins
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from exporter.host.processes import PassLimits, ProcessReader
from exporter.host.reading import HolderReading
from tests.host.fakes import BOOTED, TICK, FakeProcess, write

INIT = FakeProcess(1, parent=0, name="systemd", command="/sbin/init")


@pytest.fixture(autouse=True)
def procfs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(psutil, "PROCFS_PATH", str(tmp_path))


def read_one(reader: ProcessReader, pid: int) -> HolderReading:
    return reader.read([pid]).holders[pid]


def test_a_trainer_with_loaders(tmp_path: Path) -> None:
    write(
        tmp_path,
        INIT,
        FakeProcess(
            10,
            cpu_ticks=5 * TICK,
            main_ticks=3 * TICK,
            state="R",
            threads={11: "R", 12: "S", 13: "D"},
            io=(300, 200, 100),
        ),
        FakeProcess(20, parent=10, state="D"),
        FakeProcess(21, parent=10, name="pt_data_worker", state="R"),
        FakeProcess(22, parent=10, command="python -c from multiprocessing.resource_tracker import main"),
        FakeProcess(23, parent=10, name="wandb-core", command="wandb-core"),
        FakeProcess(24, parent=10, state="Z"),
        FakeProcess(30, parent=1),  # somebody else's
    )
    found = read_one(ProcessReader(), 10)
    assert found.cpu_seconds == pytest.approx(5.0)
    assert found.main_thread_cpu_seconds == pytest.approx(3.0)
    assert (found.children, found.loaders) == (5, 2)
    assert (found.threads, found.threads_read) == (4, 4)
    assert found.runnable_threads == 3  # two of its own, one worker
    assert found.blocked_threads == 2
    assert (found.requested_bytes, found.read_bytes, found.written_bytes) == (300, 200, 100)
    assert found.children_cpu_seconds == 0.0  # nothing yet since they were first seen
    assert found.block_seconds == 0.0


def test_workers_of_a_forkserver_are_found_below_it(tmp_path: Path) -> None:
    write(
        tmp_path,
        INIT,
        FakeProcess(10),
        FakeProcess(11, parent=10, command="python -c from multiprocessing.forkserver import main"),
        FakeProcess(12, parent=11),
        FakeProcess(13, parent=11),
    )
    assert read_one(ProcessReader(), 10).loaders == 2


def test_a_child_that_holds_a_gpu_too_is_counted_for_itself_only(tmp_path: Path) -> None:
    write(tmp_path, INIT, FakeProcess(10), FakeProcess(11, parent=10), FakeProcess(12, parent=11))
    holders = ProcessReader().read([10, 11]).holders
    assert (holders[10].children, holders[11].children) == (0, 1)


def test_totals_over_children_count_what_was_seen_and_never_fall(tmp_path: Path) -> None:
    holder = FakeProcess(10, cpu_ticks=TICK, io=(0, 1000, 0))
    old = FakeProcess(20, parent=10, cpu_ticks=100 * TICK, io=(0, 5000, 0))
    write(tmp_path, INIT, holder, old)
    reader = ProcessReader()
    assert read_one(reader, 10).children_cpu_seconds == 0.0  # what it did before is not ours to tell

    old.cpu_ticks += 2 * TICK
    old.io = (0, 5600, 0)
    new = FakeProcess(21, parent=10, cpu_ticks=TICK, io=(0, 50, 0), started_ticks=2000)
    write(tmp_path, INIT, holder, old, new)
    found = read_one(reader, 10)
    assert found.children_cpu_seconds == pytest.approx(3.0)  # the new one began since: all of it counts
    assert found.read_bytes == 1000 + 600 + 50

    write(tmp_path, INIT, holder)  # the epoch ends
    found = read_one(reader, 10)
    assert found.children == 0
    assert found.children_cpu_seconds == pytest.approx(3.0)
    assert found.read_bytes == 1650


def test_a_pid_given_to_another_process_starts_anew(tmp_path: Path) -> None:
    child = FakeProcess(20, parent=10, cpu_ticks=0)
    write(tmp_path, INIT, FakeProcess(10, cpu_ticks=9 * TICK), child)
    reader = ProcessReader()
    read_one(reader, 10)
    child.cpu_ticks = 4 * TICK
    write(tmp_path, INIT, FakeProcess(10, cpu_ticks=9 * TICK), child)
    assert read_one(reader, 10).children_cpu_seconds == pytest.approx(4.0)
    write(tmp_path, INIT, FakeProcess(10, cpu_ticks=TICK, started_ticks=5000))
    found = read_one(reader, 10)
    assert (found.started, found.children_cpu_seconds) == (BOOTED + 5000 / TICK, 0.0)
    assert found.cpu_seconds == pytest.approx(1.0)


def test_an_orphan_is_followed_to_its_new_parent(tmp_path: Path) -> None:
    write(tmp_path, INIT, FakeProcess(10), FakeProcess(11, parent=10), FakeProcess(12, parent=11))
    reader = ProcessReader()
    assert read_one(reader, 10).children == 2
    write(tmp_path, INIT, FakeProcess(10), FakeProcess(12, parent=10))  # the holder adopts orphans
    assert read_one(reader, 10).children == 1
    write(tmp_path, INIT, FakeProcess(12, parent=1), FakeProcess(13, parent=1))
    assert ProcessReader().read([13]).holders[13].children == 0


def test_a_holder_out_of_sight_is_a_problem_not_a_zero(tmp_path: Path) -> None:
    write(tmp_path, INIT)
    found = ProcessReader().read([4711])
    assert found.holders == {}
    assert "4711" in found.problems[0].what
    assert "hostPID" in found.problems[0].remedy


def test_bytes_that_may_not_be_read_are_absent(tmp_path: Path) -> None:
    write(tmp_path, INIT, FakeProcess(10, cpu_ticks=TICK), FakeProcess(11, parent=10, io=None))
    found = ProcessReader().read([10])
    assert found.holders[10].read_bytes is None
    assert found.holders[10].requested_bytes is None
    assert found.holders[10].cpu_seconds == pytest.approx(1.0)
    assert "CAP_SYS_PTRACE" in found.problems[0].remedy


@pytest.mark.parametrize(
    ("delays", "ticks", "seconds"),
    [(True, 0, 0.0), (True, TICK, 1.0), (False, 0, None), (None, 0, None), (None, TICK, 1.0)],
)
def test_block_delay_is_absent_where_the_kernel_does_not_count_it(
    tmp_path: Path, delays: bool | None, ticks: int, seconds: float | None
) -> None:
    write(tmp_path, INIT, FakeProcess(10, block_ticks=ticks), delays=delays)
    assert read_one(ProcessReader(), 10).block_seconds == seconds


def test_a_pass_is_bounded_and_says_what_it_left_out(tmp_path: Path) -> None:
    holders = [FakeProcess(pid) for pid in range(10, 15)]
    children = [FakeProcess(pid, parent=10) for pid in range(100, 120)]
    busy = FakeProcess(10, threads={1000 + number: "S" for number in range(9)})
    write(tmp_path, INIT, busy, *holders[1:], *children)
    found = ProcessReader(PassLimits(holders=3, children=8, threads=12)).read([holder.pid for holder in holders])
    assert list(found.holders) == [10, 11, 12]
    assert found.holders[10].children == 8
    assert found.left_out == 2 + 12
    assert (found.holders[10].threads, found.holders[10].threads_read) == (10, 4)


def test_a_name_with_brackets_and_blanks(tmp_path: Path) -> None:
    write(tmp_path, INIT, FakeProcess(10, name="a) (b S 1", cpu_ticks=TICK))
    found = read_one(ProcessReader(), 10)
    assert found.name == "a) (b S 1"
    assert found.cpu_seconds == pytest.approx(1.0)


def test_a_pass_reads_each_process_it_needs_and_no_other_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    others = [FakeProcess(pid) for pid in range(200, 260)]
    write(tmp_path, INIT, FakeProcess(10), FakeProcess(11, parent=10), *others)
    reader = ProcessReader()
    reader.read([10])
    opened: list[str] = []

    def watched(opener: Callable[..., Any]) -> Callable[..., Any]:
        def call(path: Any, *arguments: Any, **named: Any) -> Any:
            opened.append(str(path))
            return opener(path, *arguments, **named)

        return call

    for module in (os, builtins):
        monkeypatch.setattr(module, "open", watched(module.open))
    reader.read([10])
    read = Counter(path.removeprefix(f"{tmp_path}/") for path in opened)
    assert read == {"10/stat": 2, "10/io": 1, "11/stat": 2, "11/io": 1, "sys/kernel/task_delayacct": 1}


def test_a_name_as_long_as_the_kernel_keeps_is_not_completed_from_the_command_line(tmp_path: Path) -> None:
    command = "kernel_keeps_15_and_no_more --epochs 3"
    write(tmp_path, INIT, FakeProcess(10, name="kernel_keeps_15", command=command))
    assert read_one(ProcessReader(), 10).name == "kernel_keeps_15"
