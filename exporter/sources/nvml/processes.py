"""Processes that hold a context on a board, and how much of its SM time each had.

nvml.h: nvmlDeviceGet*RunningProcesses, nvmlDeviceGetProcessUtilization. A sample that is older than the last read, or
above 100, is dropped: drivers are known to give both.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from exporter.model import Entity, ProcessUse

_KINDS = (
    "nvmlDeviceGetComputeRunningProcesses",
    "nvmlDeviceGetGraphicsRunningProcesses",
    "nvmlDeviceGetMPSComputeRunningProcesses",
)
NO_INSTANCE = 0xFFFFFFFF
PACE = 0.9  # seconds


class Processes:
    """Of one board and its instances."""

    def __init__(self, nvml: Any, uuid: str) -> None:
        self._nvml, self._uuid = nvml, uuid
        self._at = float("-inf")
        self._last: list[ProcessUse] | None = None
        self._seen = 0  # microseconds since 1970: newest sample of the last read

    def read(self, handle: Any, now: float) -> list[ProcessUse] | None:
        """None when the driver does not tell. Asked once a second at most; in between the last answer stands."""
        if now - self._at >= PACE:
            self._at, self._last = now, self._ask(handle)
        return self._last

    def _ask(self, handle: Any) -> list[ProcessUse] | None:
        found: dict[tuple[int, int | None], float | None] = {}
        told = False
        for kind in _KINDS:
            try:
                listed = getattr(self._nvml, kind)(handle)
            except (self._nvml.NVMLError, AttributeError):
                continue
            told = True
            for process in listed:
                instance = getattr(process, "gpuInstanceId", None)
                key = (int(process.pid), None if instance is None or instance == NO_INSTANCE else int(instance))
                used = process.usedGpuMemory
                found[key] = found.get(key) if used is None else max(float(used), found.get(key) or 0.0)
        if not told:
            return None
        shares = dict(self._shares(handle))
        return [
            ProcessUse(Entity(self._uuid, instance), pid, memory, shares.get(pid))
            for (pid, instance), memory in sorted(found.items(), key=lambda item: (item[0][0], item[0][1] or -1))
        ]

    def _shares(self, handle: Any) -> Iterator[tuple[int, float]]:
        """(pid, share of the time with SMs in use), mean of the samples since the last read."""
        try:
            samples = self._nvml.nvmlDeviceGetProcessUtilization(handle, self._seen)
        except self._nvml.NVMLError:
            return
        fresh: dict[int, list[float]] = {}
        for sample in samples:
            if sample.timeStamp > self._seen and 0 <= sample.smUtil <= 100:
                fresh.setdefault(int(sample.pid), []).append(sample.smUtil / 100)
        first, self._seen = self._seen == 0, max((s.timeStamp for s in samples), default=self._seen)
        if not first:
            for pid, values in fresh.items():
                yield pid, sum(values) / len(values)
