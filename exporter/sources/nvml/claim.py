"""The claim: the driver's utilization, from its sample buffer, so that the window of each value is known.

nvml.h: nvmlDeviceGetSamples; timestamps are CPU microseconds since 1970. Each sample is the mean since the one before
it (1/6 to 1 s). Drivers without the buffer give nvmlDeviceGetUtilizationRates, whose window is not told: the time since
the last read is taken for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from exporter.model import Absence, Entity, Reading
from exporter.sources.nvml.library import NO_DATA, NOT_FOUND, absence

_BUFFERS = (("busy", 1), ("memory_busy", 2))  # field, nvmlSamplingType_t
LONGEST_GAP = 3.0  # seconds between samples; over a longer one the older value is not stretched


class Claim:
    """The two utilization numbers of one board."""

    def __init__(self, nvml: Any, entity: Entity) -> None:
        self._nvml, self._entity = nvml, entity
        self._seen: dict[str, int] = {}  # field -> timestamp of the last sample, microseconds
        self._buffered = True
        self._last: float | None = None  # of the fallback

    def read(self, handle: Any, now: float, wall: float) -> Iterator[Reading]:
        """Readings since the last call. ``wall``: Unix seconds at ``now``."""
        if self._buffered:
            try:
                yield from self._from_buffers(handle, now - wall)
                return
            except self._nvml.NVMLError as error:
                if error.value in (NOT_FOUND, NO_DATA):
                    return  # nothing new
                self._buffered = False
        yield from self._from_rates(handle, now)

    def _from_buffers(self, handle: Any, offset: float) -> Iterator[Reading]:
        made = []
        for field, kind in _BUFFERS:
            seen = self._seen.get(field, 0)
            value_type, samples = self._nvml.nvmlDeviceGetSamples(handle, kind, seen)
            stamp_of, value_of = type(samples[0]).timeStamp.__get__, type(samples[0]).sampleValue.__get__
            stamped = [(stamp_of(sample), sample) for sample in samples]  # plain C fields: see gpm.py
            fresh = sorted((stamp, _number(value_of(s), value_type)) for stamp, s in stamped if stamp > seen)
            if not fresh:
                continue
            self._seen[field] = fresh[-1][0]
            if seen == 0:
                continue  # the window before the first sample is not known
            total, start = 0.0, seen
            if fresh[0][0] - seen > LONGEST_GAP * 1e6:
                start, fresh = fresh[0][0], fresh[1:]
            before = start
            for stamp, percent in fresh:
                total += percent * (stamp - before)
                before = stamp
            if before > start:
                mean = total / (before - start) / 100
                made.append(Reading(self._entity, field, before / 1e6 + offset, mean, start / 1e6 + offset))
        yield from made

    def _from_rates(self, handle: Any, now: float) -> Iterator[Reading]:
        start, self._last = self._last, now
        try:
            rates = self._nvml.nvmlDeviceGetUtilizationRates(handle)
        except self._nvml.NVMLError as error:
            self._last = None
            why: Absence | None = absence(error)
            for field, _ in _BUFFERS:
                yield Reading(self._entity, field, now, None, None, why)
            return
        if start is not None and now > start:
            yield Reading(self._entity, "busy", now, rates.gpu / 100, start)
            yield Reading(self._entity, "memory_busy", now, rates.memory / 100, start)


def _number(value: Any, kind: int) -> float:
    """nvml.h nvmlValueType_t: 0 double, 1 unsigned int, 2 unsigned long, 3 unsigned long long, 4 signed long long."""
    return float(getattr(value, _TYPES.get(kind, "uiVal")))


_TYPES = {0: "dVal", 1: "uiVal", 2: "ulVal", 3: "ullVal", 4: "sllVal"}
