"""Which processes stand below which, without reading all of /proc each time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import psutil


class Families:
    """Remembers every process's parent, so that a pass lists /proc but reads only the processes that are new.

    A process keeps its parent until that ends, which the list shows; a pid does not come back within one pass.
    psutil.Process.children() reads every process of the node for each holder.
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
    """None: ended. 0: outside this pid namespace, or hidden (hidepid): then it is below nobody that we may see."""
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
