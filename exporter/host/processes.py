"""The processes that hold GPUs and their children: what the host does while the GPU waits.

One pass reads a bounded number of processes and starts nothing. Children come and go (data-loader workers live for
an epoch); totals over them add up what each live process did, so that they never fall when one ends. What a child
did between the last pass and its end is not seen. /proc is where psutil.PROCFS_PATH says.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import psutil

from exporter.host.account import Amounts, Totals
from exporter.host.proc import Families, Proc, Thread
from exporter.host.reading import HolderReading, ProcessesReading
from exporter.model import Problem

# Heuristic: newer PyTorch names its workers (torch/utils/data/_utils/worker.py); older ones, and other frameworks'
# forks and spawns, bear their parent's name. So do the helpers that multiprocessing and the compiler start.
LOADER_NAME = "pt_data_worker"
NO_LOADERS = ("resource_tracker", "semaphore_tracker", "forkserver", "compile_worker")
KERNEL_NAME = 15  # characters that the kernel keeps; psutil completes longer names from the command line


@dataclass(frozen=True, slots=True)
class PassLimits:
    """What one pass reads at most. Heuristic: a node of 16 GPUs with 32 workers each fits.

    A GPU process has hundreds of threads, most of them asleep for good; to read all would cost more than the rest.
    """

    holders: int = 64
    children: int = 512  # of all holders together
    threads: int = 128  # of all holders together, dealt out evenly, oldest first


class _Member(NamedTuple):
    """One process as read in this pass."""

    process: psutil.Process  # equal to that of another pass, unless its pid was given to another process
    name: str
    status: str
    amounts: Amounts
    io_known: bool


@dataclass(slots=True)
class _Family:
    """What is remembered of one holder between passes."""

    process: psutil.Process
    children: Totals[psutil.Process] = field(default_factory=Totals)
    io_known: bool = True  # False for good once one process did not let itself be read: its bytes are missing


class ProcessReader:
    """Reads the holders of GPUs, pass after pass."""

    def __init__(self, limits: PassLimits | None = None) -> None:
        self._proc = Proc(psutil.PROCFS_PATH)
        self._limits = limits or PassLimits()
        self._relatives = Families()
        self._families: dict[int, _Family] = {}
        self._helpers: dict[psutil.Process, bool] = {}  # children of their holder's name: whether they are helpers

    def read(self, holders: Iterable[int]) -> ProcessesReading:
        """One pass. ``holders``: the pids that the driver names, in the pid namespace of /proc."""
        wanted = sorted(set(holders))
        taken = wanted[: self._limits.holders]
        below = self._relatives.read(wanted)
        delays = self._proc.counts_delays()
        threads = max(1, self._limits.threads // max(1, len(taken)))
        room = self._limits.children
        left_out = len(wanted) - len(taken)
        readings: dict[int, HolderReading] = {}
        problems: list[Problem] = []
        seen: set[psutil.Process] = set()
        for pid in taken:
            holder = _member(pid)
            if holder is None:
                problems.append(_not_seen(pid))
                continue
            children = below.get(pid, ())
            read = [member for child in children[:room] if (member := _member(child)) is not None]
            left_out += max(0, len(children) - room)
            room = max(0, room - len(children))
            seen.update(member.process for member in read)
            readings[pid] = self._reading(holder, read, threads, delays)
            if not self._families[pid].io_known:
                problems.append(_not_permitted(pid))
        self._families = {pid: family for pid, family in self._families.items() if pid in readings}
        self._helpers = {process: helper for process, helper in self._helpers.items() if process in seen}
        return ProcessesReading(readings, left_out, problems)

    def _reading(
        self, holder: _Member, children: Sequence[_Member], threads: int, delays: bool | None
    ) -> HolderReading:
        pid = holder.process.pid
        family = self._families.get(pid)
        if family is None or family.process != holder.process:
            family = self._families[pid] = _Family(holder.process)
        family.io_known = family.io_known and all(member.io_known for member in (holder, *children))
        new = {child.process for child in children if child.process.pid in self._relatives.new}
        below = family.children.feed({child.process: child.amounts for child in children}, new)
        all_of_it = holder.amounts.plus(below)
        count, own = self._threads(holder, threads)
        statuses = [*(thread.status for thread in own), *(child.status for child in children)]
        return HolderReading(
            pid=pid,
            started=family.process.create_time(),  # psutil keeps it: it does not move with the clock
            name=holder.name,
            cpu_seconds=holder.amounts.cpu,
            main_thread_cpu_seconds=own[0].cpu_seconds if own else None,
            children_cpu_seconds=below.cpu,
            children=len(children),
            loaders=sum(self._is_loader(child, holder) for child in children),
            threads=count,
            threads_read=len(own),
            runnable_threads=statuses.count(psutil.STATUS_RUNNING),
            blocked_threads=statuses.count(psutil.STATUS_DISK_SLEEP),
            read_bytes=all_of_it.read if family.io_known else None,
            written_bytes=all_of_it.written if family.io_known else None,
            requested_bytes=all_of_it.requested if family.io_known else None,
            # where the kernel does not say whether it counts, a wait above 0 does
            block_seconds=all_of_it.block if delays or (delays is None and all_of_it.block > 0) else None,
        )

    def _threads(self, holder: _Member, most: int) -> tuple[int, list[Thread]]:
        """How many there are; the oldest, the main one first. None of them when the main one has just ended."""
        pid = holder.process.pid
        listed = self._proc.threads(pid)
        if listed == [pid]:
            return 1, [Thread(holder.status, holder.amounts.cpu)]
        main = self._proc.thread(pid, pid)
        if main is None:
            return len(listed), []
        others = [thread for thread in listed if thread != pid][: most - 1]
        return len(listed), [main, *(found for each in others if (found := self._proc.thread(pid, each)) is not None)]

    def _is_loader(self, child: _Member, holder: _Member) -> bool:
        if child.status == psutil.STATUS_ZOMBIE:
            return False
        if child.name == LOADER_NAME:
            return True
        if child.name != holder.name:
            return False
        helper = self._helpers.get(child.process)
        if helper is None:  # asked once: a command line costs as much as the counters of a child
            command = _command(child.process)
            helper = self._helpers[child.process] = any(word in command for word in NO_LOADERS)
        return not helper


def _member(pid: int) -> _Member | None:
    """None: ended, or hidden."""
    try:
        process = psutil.Process(pid)
        with process.oneshot():
            name, status, times = process.name()[:KERNEL_NAME], process.status(), process.cpu_times()
        io = _io(process)
    except (psutil.Error, FileNotFoundError):  # the second while it ends: the folder is there, a file no more
        return None
    amounts = Amounts(times.user + times.system, times.iowait, *(io or ()))
    return _Member(process, name, status, amounts, io is not None)


def _io(process: psutil.Process) -> tuple[int, int, int] | None:
    """Bytes asked for, read from storage and written to it; None: not permitted, or the kernel does not count them."""
    if not hasattr(process, "io_counters"):  # psutil leaves it out on a kernel without them
        return None
    try:
        io = process.io_counters()
    except (psutil.AccessDenied, psutil.ZombieProcess, FileNotFoundError):
        return None
    return io.read_chars, io.read_bytes, io.write_bytes


def _command(process: psutil.Process) -> str:
    """Empty where it may not be seen."""
    try:
        return " ".join(process.cmdline())
    except (psutil.Error, FileNotFoundError):
        return ""


def _not_seen(pid: int) -> Problem:
    return Problem(
        f"nothing about process {pid}, which holds a GPU",
        "it is not in /proc: it has just ended, or it belongs to another pid namespace or a hidden user",
        "if it lasts, run with the host's processes in view (Kubernetes: hostPID: true; /proc without hidepid)",
    )


def _not_permitted(pid: int) -> Problem:
    return Problem(
        f"no read and written bytes of process {pid} and its children",
        "/proc/PID/io of one of them may not be read, or is not there",
        "run as root or with CAP_SYS_PTRACE, on a kernel with CONFIG_TASK_IO_ACCOUNTING",
    )
