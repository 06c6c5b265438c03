"""What the host pass costs: 8 processes that hold a GPU, each with 32 threads and 16 data-loader children, at 1 Hz.

The processes sleep, so that the figures are the reader's own. ``others`` idle processes stand for the rest of a node:
a pass lists them and reads only those that are new.
"""

from __future__ import annotations

import os
import signal
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from exporter.host.reader import HostReader

HOLDERS, CHILDREN, THREADS, OTHERS = 8, 16, 32, 300
PASSES = 30


def _fork(work: Callable[[], None]) -> int:
    pid = os.fork()
    if pid == 0:
        try:
            work()
        finally:
            os._exit(0)
    return pid


def _sleep() -> None:
    time.sleep(600)


def _hold() -> None:
    for _ in range(CHILDREN):
        _fork(_sleep)
    for _ in range(THREADS - 1):
        threading.Thread(target=_sleep, daemon=True).start()
    _sleep()


@contextmanager
def _node() -> Iterator[list[int]]:
    """The pids of the holders; everything is in one process group of its own and ends with it."""
    ready, told = os.pipe()
    group = os.fork()
    if group == 0:
        os.setpgid(0, 0)
        holders = [_fork(_hold) for _ in range(HOLDERS)]
        for _ in range(OTHERS):
            _fork(_sleep)
        os.write(told, " ".join(map(str, holders)).encode())
        _sleep()
        os._exit(0)
    try:
        yield [int(pid) for pid in os.read(ready, 4096).split()]
    finally:
        os.killpg(group, signal.SIGKILL)
        os.waitpid(group, 0)


def main() -> None:
    with _node() as holders:
        time.sleep(3)  # until all have started
        reader = HostReader()
        started = time.thread_time()
        reader.read(holders)
        first = time.thread_time() - started
        cpu, wall = [], []
        for _ in range(PASSES):
            time.sleep(1)
            before, began = time.thread_time(), time.perf_counter()
            reading = reader.read(holders)
            cpu.append(time.thread_time() - before)
            wall.append(time.perf_counter() - began)
        found = reading.processes.holders.values()
        print(
            f"{len(found)} holders, {sum(holder.children for holder in found)} children, "
            f"{sum(holder.threads_read for holder in found)} threads, {len(os.listdir('/proc'))} entries in /proc"
        )
        print(f"first pass   {first * 1e3:6.2f} ms CPU")
        print(
            f"later passes {statistics.mean(cpu) * 1e3:6.2f} ms CPU mean, {max(cpu) * 1e3:.2f} max, "
            f"{statistics.median(wall) * 1e3:.2f} ms wall p50"
        )
        print(f"at 1 Hz      {statistics.mean(cpu) * 100:6.2f} % of a core")


if __name__ == "__main__":
    main()
