"""One process as /proc tells it (man 5 proc_pid_stat, proc_pid_io). Nothing is started, every file is read once."""

from __future__ import annotations

import os
from typing import NamedTuple

_TICK = 1.0 / os.sysconf("SC_CLK_TCK")
_SIZE = 4096  # every file here is shorter, and /proc gives it in one read


class Stat(NamedTuple):
    """/proc/PID/stat, or that of one thread. Seconds, not ticks."""

    name: str
    state: str  # R running or runnable, D uninterruptible, S sleeping, Z ended, ...
    parent: int
    cpu_seconds: float
    threads: int
    started: float  # after boot
    block_seconds: float  # 0 as well where the kernel does not count delays


class Io(NamedTuple):
    """/proc/PID/io in bytes."""

    requested: int  # rchar
    read: int
    written: int


class Proc:
    """A /proc tree. A process that has ended meanwhile is None; PermissionError goes to the caller."""

    def __init__(self, root: str = "/proc") -> None:
        self._root = root

    def pids(self) -> list[int]:
        """All processes that may be seen."""
        return [int(name) for name in os.listdir(self._root) if name.isdecimal()]

    def stat(self, pid: int) -> Stat | None:
        return _parse_stat(self._read(f"{pid}/stat"))

    def main_thread_stat(self, pid: int) -> Stat | None:
        return _parse_stat(self._read(f"{pid}/task/{pid}/stat"))

    def thread_state(self, pid: int, thread: int) -> str | None:
        """The letter of ``Stat.state``, without the cost of the rest."""
        content = self._read(f"{pid}/task/{thread}/stat")
        return chr(content[content.rindex(b")") + 2]) if content else None

    def threads(self, pid: int) -> list[int]:
        """Oldest first, the main thread among them."""
        try:
            return sorted(int(name) for name in os.listdir(f"{self._root}/{pid}/task"))
        except (FileNotFoundError, ProcessLookupError):
            return []

    def io(self, pid: int) -> Io | None:
        """PermissionError: needs the same user or CAP_SYS_PTRACE."""
        content = self._read(f"{pid}/io")
        if content is None:
            return None
        words = content.split()  # "rchar: 1 wchar: 2 syscr: 3 syscw: 4 read_bytes: 5 write_bytes: 6 ...", always so
        return Io(int(words[1]), int(words[9]), int(words[11]))

    def command(self, pid: int) -> str:
        """The command line, words separated by blanks; empty where it may not be seen."""
        try:
            return (self._read(f"{pid}/cmdline") or b"").replace(b"\0", b" ").decode(errors="replace")
        except PermissionError:
            return ""

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


def _parse_stat(content: bytes | None) -> Stat | None:
    if not content:
        return None
    opening, closing = content.index(b"("), content.rindex(b")")  # the name may hold blanks and brackets
    fields = content[closing + 2 :].split(None, 40)
    return Stat(
        name=content[opening + 1 : closing].decode(errors="replace"),
        state=fields[0].decode(),
        parent=int(fields[1]),
        cpu_seconds=(int(fields[11]) + int(fields[12])) * _TICK,
        threads=int(fields[17]),
        started=int(fields[19]) * _TICK,
        block_seconds=int(fields[39]) * _TICK,
    )
