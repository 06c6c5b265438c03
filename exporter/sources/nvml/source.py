"""The source `nvml`: finds the boards at each read, and reads each in a lane of its own."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from exporter.model import Batch, Device, Problem, ProcessUse, Reading, SourceError
from exporter.sources.nvml.board import Board, BoardReading
from exporter.sources.nvml.lane import Lane
from exporter.sources.nvml.library import FUNCTION_NOT_FOUND, LOST, UNINITIALIZED, load, open_library, text
from exporter.sources.nvml.xid import XidWatch

log = logging.getLogger(__name__)
DEADLINE = 2.0  # seconds for all boards of one read together; one that takes longer is given up
REOPEN_SECONDS = 30.0  # between attempts to open the library anew while a board is missing


@dataclass(slots=True)
class _Slot:
    """One board with its lane."""

    board: Board
    handle: Any
    lane: Lane[BoardReading] = field(repr=False)


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
        self._gpm, self._processes_only = gpm and not processes_only, processes_only
        self._wall, self._deadline, self._only = wall, deadline, only
        self._open = False
        self._slots: dict[str, _Slot] = {}
        self._seen: dict[int, str] = {}  # index -> UUID, for messages about boards that do not say theirs any more
        self._xids: XidWatch | None = None
        self._reopened = float("-inf")
        self._known: dict[str, Device] = {}  # boards as last read

    def read(self, now: float) -> Batch:
        """Everything since the last read. SourceError when the driver as a whole cannot be read."""
        self._ensure_open(now)
        try:
            problems = self._find(now)
        except self._nvml.NVMLError as error:
            self._shut()
            raise SourceError(f"the NVIDIA driver does not list its GPUs: {error}", "nvidia-smi; dmesg") from error
        if not self._slots and not problems:
            self._shut()
            raise SourceError(
                "the NVIDIA driver lists no GPU", "check `lspci -d 10de:`; in a container NVIDIA_VISIBLE_DEVICES=all"
            )
        return self._read_all(now, problems)

    def close(self) -> None:
        """Free samples, event set and library."""
        self._shut()

    def _ensure_open(self, now: float) -> None:
        if self._nvml is None:
            self._nvml = load()
        if not self._open:
            open_library(self._nvml)
            self._open = True
            self._reopened = now
            self._xids = XidWatch(self._nvml)

    def _find(self, now: float) -> list[Problem]:
        """Bring the slots in line with what the driver lists now."""
        nvml, listed, problems = self._nvml, set[str](), list[Problem]()
        for index in range(nvml.nvmlDeviceGetCount()):
            uuid = self._seen.get(index, "")
            try:
                handle = nvml.nvmlDeviceGetHandleByIndex(index)
                uuid = text(nvml.nvmlDeviceGetUUID(handle))
                if not self._only(uuid):
                    continue
                self._seen[index] = uuid
                if uuid not in self._slots:
                    board = Board(nvml, handle, uuid, index, gpm=self._gpm, processes_only=self._processes_only)
                    self._slots[uuid] = _Slot(board, handle, Lane(f"nvml-{index}"))
                    log.info("GPU %d is %s (%s), GPM %s", index, board.model, uuid, "yes" if board.gpm else "no")
                if self._xids is not None and not self._processes_only:
                    self._xids.watch(handle, uuid)
                listed.add(uuid)
            except nvml.NVMLError as error:
                if error.value == UNINITIALIZED:
                    raise
                problems.append(_unreadable(index, uuid, error))
        for uuid in self._slots.keys() - listed:
            slot = self._slots.pop(uuid)
            slot.lane.close()
            with contextlib.suppress(nvml.NVMLError):
                slot.board.close()
        missing = problems or self._slots.keys() != set(self._seen.values())
        if missing and now - self._reopened >= REOPEN_SECONDS:
            self._reopen(now)
        return problems

    def _reopen(self, now: float) -> None:
        """Boards that came or came back are listed after a new initialization only."""
        if any(slot.lane.stuck for slot in self._slots.values()):
            return  # a call is still under way in the library
        self._shut()
        with contextlib.suppress(SourceError):
            self._ensure_open(now)
            for problem in self._find(now):
                log.warning("%s: %s", problem.what, problem.why)

    def _read_all(self, now: float, problems: list[Problem]) -> Batch:
        wall = self._wall()
        devices: list[Device] = []
        readings: list[Reading] = []
        processes: list[ProcessUse] | None = None
        running: list[_Slot] = []
        for slot in self._slots.values():
            if slot.lane.stuck:
                problems.append(_hung(slot))
                continue
            slot.lane.start(lambda board=slot.board: board.read(now, wall))  # type: ignore[misc]
            running.append(slot)
        deadline = time.monotonic() + self._deadline
        for slot in running:
            try:
                made = slot.lane.finish(max(0.0, deadline - time.monotonic()))
            except TimeoutError:
                problems.append(_hung(slot))
                continue
            except self._nvml.NVMLError as error:
                problems.append(_unreadable(None, slot.board.entity.uuid, error))
                continue
            devices += made.devices
            readings += made.readings
            problems += made.problems
            if made.processes is not None:
                processes = [*(processes or ()), *made.processes]
        self._known |= {device.entity.uuid: device for device in devices if device.entity.gpu_instance is None}
        for uuid, code in self._xids.drain() if self._xids is not None else ():
            board = self._known.get(uuid)
            if board is None:
                continue
            if board.entity not in {device.entity for device in devices}:
                devices.append(board)  # it is lost, which the Xid explains: listed once more, so that it is counted
            readings.append(Reading(board.entity, "xid", now, 1.0, None, None, str(code)))
        return Batch(self.name, now, devices, readings, problems, processes=processes)

    def _shut(self) -> None:
        if self._xids is not None:
            self._xids.close()
            self._xids = None
        for slot in self._slots.values():
            if not slot.lane.stuck:
                with contextlib.suppress(self._nvml.NVMLError):
                    slot.board.close()
            slot.lane.close()
        self._slots.clear()
        if self._open:
            self._open = False
            with contextlib.suppress(self._nvml.NVMLError):
                self._nvml.nvmlShutdown()


def _hung(slot: _Slot) -> Problem:
    return Problem(
        f"GPU {slot.board.entity.uuid} does not answer",
        "a call into the driver has not returned; the GPU is left out until it does",
        "dmesg | grep -i xid; nvidia-smi --gpu-reset -i UUID, or reboot",
        slot.board.entity,
    )


def _unreadable(index: int | None, uuid: str, error: Any) -> Problem:
    which = uuid or f"number {index}"
    if error.value in LOST:
        why = "it has fallen off the bus or needs a reset"
        remedy = f"dmesg | grep -i xid; nvidia-smi --gpu-reset -i {which}"
    elif error.value == FUNCTION_NOT_FOUND:
        why, remedy = f"the driver is too old: {error}", "update the NVIDIA driver"
    else:
        why, remedy = str(error), "nvidia-smi -q; dmesg"
    return Problem(f"GPU {which} cannot be read", why, remedy)
