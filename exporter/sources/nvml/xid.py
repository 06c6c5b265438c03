"""Xid errors: a thread waits for the driver's events, reads drain what came."""

from __future__ import annotations

import contextlib
import ctypes
import logging
import threading
from typing import Any

from exporter.background.repeating import RepeatingTask
from exporter.model import Absence
from exporter.sources.nvml.library import LOST, absence

log = logging.getLogger(__name__)
WAIT_MS = 500  # how long one wait lasts; the longest that stopping takes


class XidWatch:
    """One event set for all boards of an open library. Boards are added by any thread."""

    def __init__(self, nvml: Any) -> None:
        """Creates the event set; without one every board is refused."""
        self._nvml = nvml
        self._lock = threading.Lock()
        self._pending: list[tuple[str, int]] = []  # (board's UUID, code)
        self._boards: dict[int | None, str] = {}  # handle as a number -> UUID, also of boards that are lost by now
        self._watched: set[str] = set()
        self._refused: dict[str, Absence] = {}
        self._set: Any = None
        self._why: Absence = Absence.NOT_SUPPORTED
        self._task: RepeatingTask | None = None
        try:
            self._set = nvml.nvmlEventSetCreate()
        except nvml.NVMLError as error:
            self._why = absence(error)
            log.info("Xid errors cannot be watched: %s", error)

    def watch(self, handle: Any, uuid: str) -> Absence | None:
        """Watch a board, if that is not yet done; why its Xids are not seen, or None. NVMLError when it is lost."""
        if self._set is None:
            return self._why
        if uuid in self._watched:
            return None
        if (refused := self._refused.get(uuid)) is not None and refused.definitive:
            return refused
        with self._lock:
            self._boards[_number(handle)] = uuid  # before the first event can come
        try:
            self._nvml.nvmlDeviceRegisterEvents(handle, self._nvml.nvmlEventTypeXidCriticalError, self._set)
        except self._nvml.NVMLError as error:
            if error.value in LOST:
                raise
            if uuid not in self._refused:
                log.info("Xid errors of %s cannot be watched: %s", uuid, error)
            self._refused[uuid] = absence(error)
            return self._refused[uuid]
        self._refused.pop(uuid, None)
        self._watched.add(uuid)
        with self._lock:
            if self._task is None:
                self._task = RepeatingTask("xid", self._wait)
                self._task.start()
        return None

    def forget(self, uuid: str) -> None:
        """The board is lost: it is registered again when it is back. Its Xids until then are counted."""
        self._watched.discard(uuid)

    def drain(self) -> list[tuple[str, int]]:
        """What came since the last call: (UUID, code)."""
        with self._lock:
            taken, self._pending = self._pending, []
        return taken

    def close(self) -> bool:
        """End the thread and free the set. False: a wait hangs, and keeps both."""
        if self._task is not None:
            self._task.stop()
            if not self._task.join(2 * WAIT_MS / 1000):
                return False
        if self._set is not None:
            with contextlib.suppress(self._nvml.NVMLError):
                self._nvml.nvmlEventSetFree(self._set)
        return True

    def _wait(self) -> float:
        """One wait for an event; the seconds until the next."""
        try:
            event = self._nvml.nvmlEventSetWait_v2(self._set, WAIT_MS)
        except self._nvml.NVMLError as error:
            # a lost GPU makes the wait fail at once, again and again
            return 0.0 if error.value == self._nvml.NVML_ERROR_TIMEOUT else WAIT_MS / 1000
        if event.eventType == self._nvml.nvmlEventTypeXidCriticalError:
            with self._lock:
                uuid = self._boards.get(_number(event.device))
                if uuid is not None:
                    self._pending.append((uuid, int(event.eventData)))
        return 0.0


def _number(handle: Any) -> int | None:
    return ctypes.cast(handle, ctypes.c_void_p).value
