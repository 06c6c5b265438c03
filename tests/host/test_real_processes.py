"""The readers on real processes of this machine."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from exporter.host.processes import ProcessReader
from exporter.host.reader import HostReader
from exporter.host.reading import HolderReading

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs Linux's /proc")

# a trainer whose main thread spins beside an idle thread, with two forked workers that read a megabyte when told
TRAINER = """
import os, sys, threading, time
workers = []
for _ in range(2):
    pid = os.fork()
    if pid == 0:
        while not os.path.exists(sys.argv[1]):
            time.sleep(0.02)
        with open("/dev/zero", "rb") as file:
            file.read(1_000_000)
        time.sleep(60)
        os._exit(0)
    workers.append(pid)
threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
print(*workers, flush=True)
while True:
    pass
"""


@pytest.fixture
def trainer(tmp_path: Path) -> Iterator[tuple[int, list[int]]]:
    command = [sys.executable, "-c", TRAINER, str(tmp_path / "go")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        workers = [int(pid) for pid in process.stdout.readline().split()]
        try:
            yield process.pid, workers
        finally:
            process.kill()
            for pid in workers:
                os.kill(pid, 9)


def until(read: Callable[[], HolderReading], done: Callable[[HolderReading], bool]) -> HolderReading:
    """The first reading that is as wanted, or the last one before patience ends."""
    end = time.monotonic() + 20
    while not done(reading := read()) and time.monotonic() < end:
        time.sleep(0.05)
    return reading


def test_a_spinning_interpreter_with_workers(trainer: tuple[int, list[int]], tmp_path: Path) -> None:
    pid, workers = trainer
    reader = ProcessReader()
    first = reader.read([pid]).holders[pid]
    assert first.requested_bytes is not None
    wanted = first.requested_bytes + 2_000_000
    (tmp_path / "go").touch()
    found = until(
        lambda: reader.read([pid]).holders[pid],
        lambda found: (found.main_thread_cpu_seconds or 0) >= 0.2 and (found.requested_bytes or 0) >= wanted,
    )
    by_psutil = psutil.Process(pid)
    assert found.requested_bytes is not None
    assert found.requested_bytes >= wanted
    assert found.main_thread_cpu_seconds is not None
    assert 0.2 <= found.main_thread_cpu_seconds <= sum(by_psutil.cpu_times()[:2])
    assert found.main_thread_cpu_seconds == pytest.approx(found.cpu_seconds, abs=0.1)  # the other thread sleeps
    assert found.started == by_psutil.create_time()
    assert (found.children, found.loaders, found.threads, found.threads_read) == (len(workers), 2, 2, 2)
    assert found.runnable_threads >= 1


def test_a_holder_that_ends_is_not_seen_any_more(trainer: tuple[int, list[int]]) -> None:
    pid, workers = trainer
    reader = ProcessReader()
    os.kill(workers[0], 9)
    found = until(lambda: reader.read([pid]).holders[pid], lambda found: found.loaders == 1)
    assert (found.children, found.loaders) == (2, 1)  # nobody has waited for it: it is still there, ended
    assert reader.read([2**22 + 1]).holders == {}


def test_this_node_as_a_whole() -> None:
    reading = HostReader().read([os.getpid()])
    assert reading.processes.holders[os.getpid()].cpu_seconds > 0
    assert all(stall is None or stall.seconds >= 0 for found in reading.pressure.values() for stall in (found.some,))


def test_a_node_without_proc_and_sys_is_told_not_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(psutil, "PROCFS_PATH", str(tmp_path / "proc"))
    reading = HostReader(tmp_path / "sys").read([1])
    assert (reading.pressure, reading.rdma, reading.processes.holders) == ({}, [], {})
    assert any("processes" in problem.what for problem in reading.problems)
