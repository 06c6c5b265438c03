"""The source `nvml`: all GPUs that the driver lists, each visited in a lane of its own."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from exporter.background.backoff import Backoff
from exporter.model import (
    Batch,
    Device,
    Entity,
    Fabric,
    LinkState,
    Part,
    Problem,
    ProcessUse,
    Reading,
    SourceError,
)
from exporter.sources.nvml import problems
from exporter.sources.nvml.board import BoardReading
from exporter.sources.nvml.context import SLOW_SECONDS
from exporter.sources.nvml.library import load, open_library
from exporter.sources.nvml.slot import ReadOptions, Slot
from exporter.sources.nvml.xid import XidWatch

log = logging.getLogger(__name__)
DEADLINE = 2.0  # seconds for all GPUs of one read together; one that takes longer is left out
HEAD_START = 0.004  # seconds before the next GPU is begun too: side by side they would fight for the interpreter
REOPEN_SECONDS = 30.0  # with a GPU missing: then the library is reopened; doubles while that does not help
REOPEN_LONGEST = 600.0  # because it costs every other GPU some windows of its measurement


@dataclass(slots=True)
class _Gathered:
    """The results of one read so far."""

    devices: list[Device] = field(default_factory=list)
    readings: list[Reading] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    processes: list[ProcessUse] | None = None
    seen: set[str] = field(default_factory=set)  # GPUs that were read, hang, or have a problem
    links: dict[Entity | Part, Mapping[int, LinkState]] = field(default_factory=dict)
    failed: bool = False  # some GPU answers with an error

    def add(self, made: BoardReading) -> None:
        """A GPU that was read."""
        self.devices += made.devices
        self.readings += made.readings
        self.problems += made.problems
        if made.links:
            self.links[made.devices[0].entity] = made.links
        if made.processes is not None:
            self.processes = [*(self.processes or ()), *made.processes]


class NvmlSource:
    """All boards that the driver lists. Used by one thread."""

    name = "nvml"

    def __init__(
        self,
        *,
        gpm: bool = True,
        processes_only: bool = False,
        nvml: Any = None,
        wall: Callable[[], float] = time.time,
        deadline: float = DEADLINE,
        only: Callable[[str], bool] = lambda uuid: True,
    ) -> None:
        """``gpm`` False: the claim and the context only. ``processes_only``: who holds GPUs, beside another source that
        reads the rest. ``only``: which boards, by UUID. Opens at the first read."""
        self._nvml = nvml
        self._wanted = ReadOptions(gpm and not processes_only, processes_only, only)
        self._wall, self._deadline = wall, deadline
        self._open = False
        self._slots: dict[int, Slot] = {}  # by the driver's index
        self._xids: XidWatch | None = None
        self._late: list[tuple[str, int]] = []  # Xids that came before the library was reopened
        self._known: dict[str, Device] = {}  # boards as last read, by UUID
        self._backoff = Backoff(REOPEN_SECONDS, REOPEN_LONGEST)
        self._reopen_at: float | None = None

    def read(self, now: float) -> Batch:
        """Everything since the last read. SourceError when the driver as a whole cannot be read."""
        wall = self._wall()  # at ``now``: what follows may take its time
        if self._reopen_at is not None and now >= self._reopen_at and not self._stuck():
            log.info("reopening the driver's library: a GPU is missing")
            self._shut()
            self._reopen_at = None
        self._ensure_open()
        self._find()
        gathered = self._visit(now, wall)
        self._note_missing(now, gathered)
        self._add_xids(now, gathered)
        return Batch(
            self.name,
            now,
            gathered.devices,
            gathered.readings,
            gathered.problems,
            processes=gathered.processes,
            fabric=Fabric(now, SLOW_SECONDS, links=gathered.links) if gathered.links else None,
        )

    def close(self) -> None:
        """Free samples, event set and library; what a call that hangs holds is left."""
        self._shut()

    def _ensure_open(self) -> None:
        if self._nvml is None:
            self._nvml = load()
        if not self._open:
            open_library(self._nvml)
            self._open = True
            self._xids = None if self._wanted.processes_only else XidWatch(self._nvml)

    def _find(self) -> None:
        """One slot for each GPU that is listed now."""
        try:
            count = self._nvml.nvmlDeviceGetCount()
        except self._nvml.NVMLError as error:
            self._close_for_retry()
            raise SourceError(f"the NVIDIA driver does not list its GPUs: {error}", "nvidia-smi; dmesg") from error
        if count == 0:
            self._close_for_retry()
            raise SourceError(
                "the NVIDIA driver lists no GPU", "check `lspci -d 10de:`; in a container NVIDIA_VISIBLE_DEVICES=all"
            )
        for index in range(count):
            if index not in self._slots:
                self._slots[index] = Slot(self._nvml, index, self._wanted, self._xids)
        for index in [index for index in self._slots if index >= count and not self._slots[index].lane.busy]:
            self._slots.pop(index).close()

    def _visit(self, now: float, wall: float) -> _Gathered:
        gathered, running = _Gathered(), list[Slot]()
        for slot in self._slots.values():
            if slot.lane.start(lambda slot=slot: slot.visit(now, wall)):  # type: ignore[misc]
                slot.lane.done(HEAD_START)
                running.append(slot)
            else:
                self._add_problem(gathered, slot, problems.hung(slot.index, slot.uuid, self._deadline))
        deadline = time.monotonic() + self._deadline
        for slot in running:
            self._collect(gathered, slot, max(0.0, deadline - time.monotonic()))
        return gathered

    def _collect(self, gathered: _Gathered, slot: Slot, patience: float) -> None:
        if not slot.lane.done(patience):
            slot.lane.abandon()  # what it brings in the end is of another moment
            self._add_problem(gathered, slot, problems.hung(slot.index, slot.uuid, self._deadline))
            return
        try:
            made = slot.lane.take()
        except self._nvml.NVMLError as error:
            self._add_problem(gathered, slot, problems.unreadable(slot.index, slot.uuid, error))
            gathered.failed = True
        except Exception as error:  # costs this GPU, not the others
            log.exception("GPU %d: unexpected error", slot.index)
            self._add_problem(gathered, slot, problems.unexpected(slot.index, slot.uuid, error))
        else:
            gathered.seen.add(slot.uuid)
            if made is not None:
                gathered.add(made)
                self._known[slot.uuid] = made.devices[0]

    def _add_problem(self, gathered: _Gathered, slot: Slot, problem: Problem) -> None:
        gathered.seen.add(slot.uuid)
        if not slot.uuid or self._wanted.only(slot.uuid):
            gathered.problems.append(problem)

    def _note_missing(self, now: float, gathered: _Gathered) -> None:
        """A board that came back is listed only after the library is reopened."""
        gone = sorted(self._known.keys() - gathered.seen)
        gathered.problems += (problems.unlisted(uuid) for uuid in gone)
        if not gone and not gathered.failed:
            self._backoff.worked()
            self._reopen_at = None
        elif self._reopen_at is None:
            self._reopen_at = now + self._backoff.failed(now)

    def _add_xids(self, now: float, gathered: _Gathered) -> None:
        listed = {device.entity for device in gathered.devices}
        for uuid, code in self._drained():
            board = self._known.get(uuid)
            if board is None:
                log.warning("Xid %d of %s, which was never read", code, uuid)
                continue
            if board.entity not in listed:  # lost, as the Xid explains: listed once more, so that the Xid counts
                listed.add(board.entity)
                gathered.devices.append(board)
            gathered.readings.append(Reading(board.entity, "xid", now, 1.0, None, None, str(code)))

    def _drained(self) -> Iterator[tuple[str, int]]:
        late, self._late = self._late, []
        yield from late
        if self._xids is not None:
            yield from self._xids.drain()

    def _stuck(self) -> bool:
        return any(slot.lane.busy for slot in self._slots.values())

    def _close_for_retry(self) -> None:
        """Close, so that the next read opens again; not while a call hangs: each attempt would leave a thread."""
        if not self._stuck():
            self._shut()

    def _shut(self) -> None:
        free = True
        if self._xids is not None:
            free = self._xids.close()
            self._late += self._xids.drain()
            self._xids = None
        for slot in self._slots.values():
            free = slot.close() and free
        self._slots.clear()
        if self._open:
            self._open = False
            if free:  # shutting the library under a call may crash, or hang as well
                with contextlib.suppress(self._nvml.NVMLError):
                    self._nvml.nvmlShutdown()
