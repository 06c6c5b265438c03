"""What psutil does not read: states of single threads, and whether the kernel counts delays (man 5 proc_pid_stat).

psutil.Process.threads() leaves the states out, and reads all threads: a GPU process has hundreds.
"""

from __future__ import annotations

import os
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
        """Whether the kernel counts waiting for storage; None: it does not say (before Linux 5.14)."""
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
