"""The processes that hold GPUs and their children: what the host does while the GPU waits.

One pass reads a bounded number of processes and starts nothing. Children come and go (data-loader workers live for
an epoch); totals over them add up what each live process did, so that they never fall when one ends. What a child
did between the last pass and its end is not seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from exporter.host.family import Families
from exporter.host.proc import Io, Proc, Stat
from exporter.host.reading import HolderReading, ProcessesReading
from exporter.host.totals import Amounts, Identity, Totals
from exporter.model import Problem

# Heuristic: newer PyTorch names its workers (torch/utils/data/_utils/worker.py); older ones, and other frameworks'
# forks and spawns, bear their parent's name. So do the helpers that multiprocessing and the compiler start.
LOADER_NAME = "pt_data_worker"
NO_LOADERS = ("resource_tracker", "semaphore_tracker", "forkserver", "compile_worker")


@dataclass(frozen=True, slots=True)
class Limits:
    """What one pass reads at most. Heuristic: a node of 16 GPUs with 32 workers each fits.

    A GPU process has hundreds of threads, most of them asleep for good; to read all would cost more than the rest.
    """

    holders: int = 64
    children: int = 512  # of all holders together
    threads: int = 128  # of all holders together, dealt out evenly, oldest first


class _Member(NamedTuple):
    """One process as read in this pass."""

    identity: Identity
    stat: Stat
    io: Io | None  # None: may not be read
    amounts: Amounts


@dataclass(slots=True)
class _Family:
    """What is remembered of one holder between passes."""

    started: float
    children: Totals = field(default_factory=Totals)
    io_known: bool = True  # False for good once one process did not let itself be read: its bytes are missing


class ProcessReader:
    """Reads the holders of GPUs, pass after pass; ``root`` is where /proc is."""

    def __init__(self, root: str = "/proc", limits: Limits | None = None) -> None:
        self._proc = Proc(root)
        self._limits = limits or Limits()
        self._relatives = Families(self._proc)
        self._families: dict[int, _Family] = {}
        self._helpers: dict[Identity, bool] = {}  # children of their holder's name: whether they are helpers

    def read(self, holders: Iterable[int]) -> ProcessesReading:
        """One pass. ``holders``: the pids that the driver names, in the pid namespace of ``root``."""
        wanted = sorted(set(holders))
        taken = wanted[: self._limits.holders]
        below = self._relatives.read(wanted)
        delays = self._proc.counts_delays()
        threads = max(1, self._limits.threads // max(1, len(taken)))
        room = self._limits.children
        left_out = len(wanted) - len(taken)
        readings: dict[int, HolderReading] = {}
        problems: list[Problem] = []
        seen: set[Identity] = set()
        for pid in taken:
            holder = self._member(pid)
            if holder is None:
                problems.append(_not_seen(pid))
                continue
            children = below.get(pid, ())
            read = [member for child in children[:room] if (member := self._member(child)) is not None]
            left_out += max(0, len(children) - room)
            room = max(0, room - len(children))
            seen.update(member.identity for member in read)
            readings[pid] = self._reading(holder, read, threads, delays)
            if not self._families[pid].io_known:
                problems.append(_not_permitted(pid))
        self._families = {pid: family for pid, family in self._families.items() if pid in readings}
        self._helpers = {identity: helper for identity, helper in self._helpers.items() if identity in seen}
        return ProcessesReading(readings, left_out, problems)

    def _reading(
        self, holder: _Member, children: Sequence[_Member], threads: int, delays: bool | None
    ) -> HolderReading:
        pid, started = holder.identity
        family = self._families.get(pid)
        if family is None or family.started != started:
            family = self._families[pid] = _Family(started)
        family.io_known = family.io_known and all(member.io is not None for member in (holder, *children))
        below = family.children.feed({child.identity: child.amounts for child in children}, self._relatives.new)
        all_of_it = holder.amounts.plus(below)
        main = holder.stat if holder.stat.threads == 1 else self._proc.main_thread_stat(pid)
        own_states = [main.state, *self._other_states(holder, threads - 1)] if main else []
        states = own_states + [child.stat.state for child in children]
        return HolderReading(
            pid=pid,
            started=started,
            name=holder.stat.name,
            cpu_seconds=holder.amounts.cpu,
            main_thread_cpu_seconds=main.cpu_seconds if main else None,
            children_cpu_seconds=below.cpu,
            children=len(children),
            loaders=sum(self._is_loader(child, holder) for child in children),
            threads=holder.stat.threads,
            threads_read=len(own_states),
            runnable_threads=states.count("R"),
            blocked_threads=states.count("D"),
            read_bytes=all_of_it.read if family.io_known else None,
            written_bytes=all_of_it.written if family.io_known else None,
            requested_bytes=all_of_it.requested if family.io_known else None,
            # where the kernel does not say whether it counts, a wait above 0 does
            block_seconds=all_of_it.block if delays or (delays is None and all_of_it.block > 0) else None,
        )

    def _member(self, pid: int) -> _Member | None:
        """None: ended, or hidden."""
        try:
            stat = self._proc.stat(pid)
        except PermissionError:
            return None
        if stat is None:
            return None
        try:
            io = self._proc.io(pid)
        except PermissionError:
            io = None
        else:
            if io is None and self._proc.stat(pid) is None:  # ended since; else a kernel that does not count
                return None
        amounts = Amounts(stat.cpu_seconds, stat.block_seconds, *(io or ()))
        return _Member(Identity(pid, stat.started), stat, io, amounts)

    def _other_states(self, holder: _Member, most: int) -> list[str]:
        """States of the oldest threads beside the main one."""
        if holder.stat.threads == 1:
            return []
        pid = holder.identity.pid
        threads = [thread for thread in self._proc.threads(pid) if thread != pid][:most]
        return [state for thread in threads if (state := self._proc.thread_state(pid, thread)) is not None]

    def _is_loader(self, child: _Member, holder: _Member) -> bool:
        if child.stat.state == "Z":
            return False
        if child.stat.name == LOADER_NAME:
            return True
        if child.stat.name != holder.stat.name:
            return False
        helper = self._helpers.get(child.identity)
        if helper is None:  # asked once: a command line costs as much as everything else of a child
            command = self._proc.command(child.identity.pid)
            helper = self._helpers[child.identity] = any(word in command for word in NO_LOADERS)
        return not helper


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
