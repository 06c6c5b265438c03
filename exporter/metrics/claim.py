"""The driver's claim."""

from __future__ import annotations

from collections.abc import Iterator

from exporter.core.snapshot import Snapshot
from exporter.metrics.family import Family, Group, Profile, Sample, Type, device_labels

BUSY = Family(
    "busy_ratio",
    Type.GAUGE,
    "ratio",
    "utilization.gpu: share of the last window in which at least one kernel ran, however small. Absent on MIG.",
    profile=Profile.MINIMAL,
)
BUSY_SECONDS = Family(
    "busy_seconds",
    Type.COUNTER,
    "seconds",
    'Seconds in which at least one kernel ran; divide by observed_seconds_total{of="claim"}.',
    profile=Profile.MINIMAL,
)
MEMORY_BUSY = Family(
    "memory_busy_ratio",
    Type.GAUGE,
    "ratio",
    "utilization.memory: share of the last window in which memory was read or written at all. Not bandwidth.",
)


def _collect(snapshot: Snapshot) -> Iterator[Sample]:
    for view in snapshot.entities:
        device = device_labels(view)
        if (busy := view.means.get("busy")) is not None:
            yield Sample(BUSY, device, busy)
        if (seconds := view.totals.seconds.get("busy")) is not None:
            yield Sample(BUSY_SECONDS, device, seconds)
        if (memory := view.means.get("memory_busy")) is not None:
            yield Sample(MEMORY_BUSY, device, memory)


GROUP = Group("The driver's claim", (BUSY, BUSY_SECONDS, MEMORY_BUSY), _collect)
