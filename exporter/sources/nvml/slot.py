"""One position in the driver's list: the GPU there is read in its own lane."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from exporter.background.lane import Lane
from exporter.model import Reading
from exporter.sources.nvml.board import POLL_SECONDS, BoardReading, GpuReader
from exporter.sources.nvml.library import LOST, text
from exporter.sources.nvml.xid import XidWatch

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What is read, and from which boards (``only``: by UUID)."""

    gpm: bool
    processes_only: bool
    only: Callable[[str], bool]


class Slot:
    """Finds its GPU again at each poll, so that another one in its place is noticed."""

    def __init__(self, nvml: Any, index: int, wanted: ReadOptions, xids: XidWatch | None) -> None:
        self._nvml, self.index, self._wanted, self._xids = nvml, index, wanted, xids
        self.uuid = ""  # as last seen, for messages about a GPU that no longer answers
        self.lane: Lane[BoardReading | None] = Lane(f"nvml-{index}")
        self._board: GpuReader | None = None
        self._handle: Any = None  # None: to be found
        self._found = float("-inf")

    def visit(self, now: float, wall: float) -> BoardReading | None:
        """In the lane's thread: find the GPU and read it; None: not a wanted one. NVMLError: it cannot be read."""
        nvml = self._nvml
        try:
            handle = self._find(now)
            if not self._wanted.only(self.uuid):
                self.drop()
                return None
            board = self._board_of(handle, self.uuid)
            unseen = self._xids.watch(handle, self.uuid) if self._xids is not None else None
            made = board.read(handle, now, wall)
        except nvml.NVMLError as error:
            self._handle = None
            if error.value in LOST:
                self.drop()
            raise
        if unseen is not None:
            made.readings.append(Reading(board.entity, "xid", now, None, None, unseen))
        return made

    def _find(self, now: float) -> Any:
        """The handle of the GPU, which is identified by its UUID."""
        if self._handle is None or now - self._found >= POLL_SECONDS:
            self._handle = None
            handle = self._nvml.nvmlDeviceGetHandleByIndex(self.index)
            self.uuid = text(self._nvml.nvmlDeviceGetUUID(handle))
            self._handle, self._found = handle, now
        return self._handle

    def _board_of(self, handle: Any, uuid: str) -> GpuReader:
        if self._board is not None and self._board.entity.uuid == uuid:
            return self._board
        self.drop()
        wanted = self._wanted
        board = GpuReader(self._nvml, handle, uuid, self.index, gpm=wanted.gpm, processes_only=wanted.processes_only)
        log.info("GPU %d is %s (%s), GPM %s", self.index, board.model, uuid, "yes" if board.gpm else "no")
        self._board = board
        return board

    def drop(self) -> None:
        """Release the GPU. In the lane's thread, or while the lane is idle."""
        if self._board is not None:
            if self._xids is not None:
                self._xids.forget(self._board.entity.uuid)
            with contextlib.suppress(self._nvml.NVMLError):
                self._board.close()
            self._board = None

    def close(self) -> bool:
        """Free everything. False: a call hangs, and keeps what it holds; its thread ends when it is back."""
        busy = self.lane.busy
        if not busy:
            self.drop()
        self.lane.stop()
        return not busy
