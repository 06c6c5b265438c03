"""Processes that hold a context on a board, and how much of its SM time each had.

nvml.h: nvmlDeviceGet*RunningProcesses, nvmlDeviceGetProcessUtilization. A sample that is older than the last read, or
above 100, is dropped: drivers are known to give both.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

from exporter.model import Entity, ProcessUse
from exporter.sources.nvml.library import NOT_SUPPORTED, ReusedArray

_KINDS = (
    "nvmlDeviceGetComputeRunningProcesses_v3",
    "nvmlDeviceGetGraphicsRunningProcesses_v3",
    "nvmlDeviceGetMPSComputeRunningProcesses_v3",
)
NO_INSTANCE = 0xFFFFFFFF
NOT_AVAILABLE = 0xFFFFFFFFFFFFFFFF  # NVML_VALUE_NOT_AVAILABLE of an unsigned long long
USUAL = 16  # processes there is room for at first
PACE = 0.9  # seconds


class _ProcessInfo(ctypes.Structure):
    """nvml.h nvmlProcessInfo_v2_t, which functions of _v3 take; bindings of 12.535 have another one."""

    _fields_ = (
        ("pid", ctypes.c_uint),
        ("usedGpuMemory", ctypes.c_ulonglong),
        ("gpuInstanceId", ctypes.c_uint),
        ("computeInstanceId", ctypes.c_uint),
    )


class Processes:
    """Of one board and its instances."""

    def __init__(self, nvml: Any, uuid: str) -> None:
        self._nvml, self._uuid = nvml, uuid
        self._lists = [ReusedArray(nvml, kind, _ProcessInfo, USUAL) for kind in _KINDS]
        self._used = ReusedArray(nvml, "nvmlDeviceGetProcessUtilization", nvml.c_nvmlProcessUtilizationSample_t, USUAL)
        self._at = float("-inf")
        self._last: list[ProcessUse] | None = None
        self._shared = True  # the driver can report shares; with MIG on it cannot
        self._seen = 0  # microseconds since 1970: newest sample of the last read

    def read(self, handle: Any, now: float) -> list[ProcessUse] | None:
        """None if the driver does not list them. Asked once a second at most, else the last answer is returned."""
        if now - self._at >= PACE:
            self._at, self._last = now, self._ask(handle)
        return self._last

    def _ask(self, handle: Any) -> list[ProcessUse] | None:
        found: dict[tuple[int, int | None], float | None] = {}
        listable = False
        for room in self._lists:
            try:
                listed = room.filled(lambda call, count, array: call(handle, count, array))
            except self._nvml.NVMLError:
                continue
            listable = True
            for process in listed:
                instance, used = int(process.gpuInstanceId), int(process.usedGpuMemory)
                key = (int(process.pid), None if instance == NO_INSTANCE else instance)
                found[key] = found.get(key) if used == NOT_AVAILABLE else max(float(used), found.get(key) or 0.0)
        if not listable:
            return None
        shares = dict(self._shares(handle))
        return [
            ProcessUse(Entity(self._uuid, instance), pid, memory, shares.get(pid))
            for (pid, instance), memory in sorted(found.items(), key=lambda item: (item[0][0], item[0][1] or -1))
        ]

    def _shares(self, handle: Any) -> Iterator[tuple[int, float]]:
        """(pid, share of the time with SMs in use), mean of the samples since the last read."""
        if not self._shared:
            return
        try:
            after = ctypes.c_ulonglong(self._seen)
            samples = self._used.filled(lambda call, count, array: call(handle, array, count, after))
        except self._nvml.NVMLError as error:
            self._shared = error.value != NOT_SUPPORTED
            return
        fresh: dict[int, list[float]] = {}
        for sample in samples:
            if sample.timeStamp > self._seen and 0 <= sample.smUtil <= 100:
                fresh.setdefault(int(sample.pid), []).append(sample.smUtil / 100)
        first, self._seen = self._seen == 0, max((s.timeStamp for s in samples), default=self._seen)
        if not first:
            for pid, values in fresh.items():
                yield pid, sum(values) / len(values)
