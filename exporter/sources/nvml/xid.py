"""Xid errors: a thread waits for the driver's events, reads drain what came."""

from __future__ import annotations

import contextlib
import ctypes
import logging
import threading
from typing import Any

log = logging.getLogger(__name__)
WAIT_MS = 500  # how long one wait lasts; the longest that stopping takes


class XidWatch:
    """One event set for all boards of an open library."""

    def __init__(self, nvml: Any) -> None:
        self._nvml = nvml
        self._lock = threading.Lock()
        self._pending: list[tuple[str, int]] = []  # (board's UUID, code)
        self._boards: dict[int | None, str] = {}  # handle as a number -> UUID
        self._stop = threading.Event()
        self._set: Any = None
        self._thread: threading.Thread | None = None
        self._refused: set[str] = set()

    def watch(self, handle: Any, uuid: str) -> None:
        """Begin to watch a board; a board that cannot be watched is said once."""
        if uuid in self._boards.values() or uuid in self._refused:
            return
        try:
            if self._set is None:
                self._set = self._nvml.nvmlEventSetCreate()
            self._nvml.nvmlDeviceRegisterEvents(handle, self._nvml.nvmlEventTypeXidCriticalError, self._set)
        except self._nvml.NVMLError as error:
            self._refused.add(uuid)
            log.info("Xid errors of %s cannot be watched: %s", uuid, error)
            return
        self._boards[_number(handle)] = uuid
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="xid", daemon=True)
            self._thread.start()

    def drain(self) -> list[tuple[str, int]]:
        """What came since the last call: (UUID, code)."""
        with self._lock:
            taken, self._pending = self._pending, []
        return taken

    def close(self) -> None:
        """End the thread and free the set; a wait that hangs keeps both."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(2 * WAIT_MS / 1000)
            if self._thread.is_alive():
                return
        if self._set is not None:
            with contextlib.suppress(self._nvml.NVMLError):
                self._nvml.nvmlEventSetFree(self._set)

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                event = self._nvml.nvmlEventSetWait_v2(self._set, WAIT_MS)
            except self._nvml.NVMLError as error:
                if error.value != self._nvml.NVML_ERROR_TIMEOUT:
                    self._stop.wait(WAIT_MS / 1000)  # a lost GPU makes the wait fail at once, again and again
                continue
            if event.eventType == self._nvml.nvmlEventTypeXidCriticalError:
                uuid = self._boards.get(_number(event.device))
                if uuid is not None:
                    with self._lock:
                        self._pending.append((uuid, int(event.eventData)))


def _number(handle: Any) -> int | None:
    return ctypes.cast(handle, ctypes.c_void_p).value
