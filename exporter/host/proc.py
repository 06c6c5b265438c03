"""What psutil does not read, or only at a high cost (man 5 proc_pid_stat).

psutil.Process.threads() leaves out the states, and reads all threads: a GPU process has hundreds.
psutil.Process.children() reads every process of the node for each holder.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import psutil

_TICK = 1.0 / os.sysconf("SC_CLK_TCK")
_SIZE = 4096  # every file here is shorter, and /proc gives it in one read
_STATUS = {"R": psutil.STATUS_RUNNING, "D": psutil.STATUS_DISK_SLEEP}


class Thread(NamedTuple):
    """/proc/PID/task/TID/stat."""

    status: str  # psutil's word for running or runnable and for uninterruptible sleep; else the kernel's letter
    cpu_seconds: float


class Proc:
    """A /proc tree. A thread that has ended meanwhile is None; PermissionError goes to the caller."""

    def __init__(self, root: str) -> None:
        self._root = root

    def threads(self, pid: int) -> list[int]:
        """Oldest first, the main thread among them."""
        try:
            return sorted(int(name) for name in os.listdir(f"{self._root}/{pid}/task"))
        except (FileNotFoundError, ProcessLookupError):
            return []

    def thread(self, pid: int, thread: int) -> Thread | None:
        content = self._read(f"{pid}/task/{thread}/stat")
        if not content:
            return None
        fields = content[content.rindex(b")") + 2 :].split(None, 13)  # the name may hold blanks and brackets
        letter = fields[0].decode()
        return Thread(_STATUS.get(letter, letter), (int(fields[11]) + int(fields[12])) * _TICK)

    def counts_delays(self) -> bool | None:
        """Whether the kernel counts waiting for storage; None: not known (before Linux 5.14)."""
        content = self._read("sys/kernel/task_delayacct")
        return None if content is None else content.strip() != b"0"

    def _read(self, path: str) -> bytes | None:
        try:
            descriptor = os.open(f"{self._root}/{path}", os.O_RDONLY | os.O_CLOEXEC)
        except (FileNotFoundError, ProcessLookupError, NotADirectoryError):
            return None
        try:
            return os.read(descriptor, _SIZE)
        except ProcessLookupError:  # ended between open and read
            return None
        finally:
            os.close(descriptor)


class Families:
    """Finds the processes below each holder. Remembers every process's parent, so that a pass lists /proc but reads
    only the processes that are new.

    A process keeps its parent until that ends, which the list shows; a pid does not come back within one pass.
    """

    def __init__(self) -> None:
        self._parents: dict[int, int] | None = None  # None: no pass yet
        self._below: dict[int, list[int]] = {}
        self._holders: frozenset[int] = frozenset()
        self.new: frozenset[int] = frozenset()  # processes that began since the last pass; empty in the first

    def read(self, holders: Iterable[int]) -> Mapping[int, Sequence[int]]:
        """Holder -> the live processes below it, by pid. One that is a holder too begins a tree of its own.

        A holder that /proc does not show is missing.
        """
        listed, wanted = frozenset(psutil.pids()), frozenset(holders)
        before = self._parents or {}
        self.new = listed - before.keys() if self._parents is not None else frozenset()
        if wanted == self._holders and listed == before.keys():
            return self._below  # nobody came or went, so nobody has another parent
        known: dict[int, int] = {}
        for pid in listed:
            parent = before.get(pid)
            if parent is None or (parent and parent not in listed):  # new, or its parent ended: it has another now
                parent = _parent(pid)
            if parent is not None:
                known[pid] = parent
        self._parents = known
        children: dict[int, list[int]] = {}
        for pid, parent in known.items():
            children.setdefault(parent, []).append(pid)
        self._below = {holder: _below(holder, children, wanted) for holder in wanted if holder in known}
        self._holders = wanted
        return self._below


def _parent(pid: int) -> int | None:
    """None: ended. 0: outside this pid namespace, or hidden (hidepid): then it has no visible parent."""
    try:
        return psutil.Process(pid).ppid()
    except (psutil.NoSuchProcess, FileNotFoundError):
        return None
    except psutil.AccessDenied:
        return 0


def _below(holder: int, children: Mapping[int, Sequence[int]], holders: frozenset[int]) -> list[int]:
    found: list[int] = []
    left = [holder]
    while left:
        for child in children.get(left.pop(), ()):
            if child not in holders:
                found.append(child)
                left.append(child)
    return sorted(found)
