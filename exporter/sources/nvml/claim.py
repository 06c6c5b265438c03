"""The claim: the driver's utilization, from its sample buffer, so that the window of each value is known.

nvml.h: nvmlDeviceGetSamples; timestamps are CPU microseconds since 1970. Each sample is the mean since the one before
it (1/6 to 1 s). They are converted to monotonic time by the difference of the two clocks at the read. Drivers without
the buffer give nvmlDeviceGetUtilizationRates, whose window is not reported: the time since the last read is used.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

from exporter.model import Absence, Entity, Reading
from exporter.sources.nvml.library import (
    FUNCTION_NOT_FOUND,
    INVALID_ARGUMENT,
    LOST,
    NO_DATA,
    NO_PERMISSION,
    NOT_FOUND,
    NOT_SUPPORTED,
    ReusedArray,
    absence,
    number,
)

_BUFFERS = {"busy": 1, "memory_busy": 2}  # field: nvmlSamplingType_t
RING = 128  # samples there is room for; the driver keeps about 100
_NOTHING_NEW = frozenset({NOT_FOUND, NO_DATA})
_NO_BUFFER = frozenset({NOT_SUPPORTED, FUNCTION_NOT_FOUND, INVALID_ARGUMENT, NO_PERMISSION})
LONGEST_GAP = 3.0  # seconds between samples; a longer one is not covered by the older value, and is reported as no data
STEP = 0.5  # seconds; the clocks drift by less between two reads: the wall clock was set
SELDOM = 0.85  # seconds; a buffer is asked at least this often, also when nothing new is due
WAITED_OUT = 30.0  # seconds; set back by less: the buffer still holds samples of the time that comes again


class ClaimReader:
    """The two utilization numbers of one board."""

    def __init__(self, nvml: Any, entity: Entity) -> None:
        self._nvml, self._entity = nvml, entity
        self._buffers = {field: Buffer(nvml, kind) for field, kind in _BUFFERS.items()}
        self._asked: dict[str, float] = {}  # field -> when its buffer was last asked
        self._due: dict[str, int] = {}  # field -> timestamp that its next sample should have, microseconds
        self._seen: dict[str, int] = {}  # field -> timestamp of the last sample, microseconds
        self._fresh: dict[str, float] = {}  # field -> when its buffer last had something new
        self._rated: set[str] = set()  # fields without a buffer
        self._last: float | None = None  # when the rates were last read
        self._offset: float | None = None  # monotonic less wall

    def read(self, handle: Any, now: float, wall: float) -> Iterator[Reading]:
        """Readings since the last call. ``wall``: Unix seconds at ``now``. NVMLError when the GPU is lost."""
        self._notice_step(now - wall, wall)
        for field in _BUFFERS:
            if field not in self._rated:
                yield from self._from_buffer(handle, field, now, wall)
        if self._rated:
            yield from self._from_rates(handle, now)

    def _notice_step(self, offset: float, wall: float) -> None:
        """After a step of the wall clock, what is in the buffers belongs to another time line."""
        if self._offset is not None and abs(offset - self._offset) > STEP:
            here = int(wall * 1e6)
            twice = range(here, here + int(WAITED_OUT * 1e6))
            self._seen = {field: seen if seen in twice else here for field, seen in self._seen.items()}
        self._offset = offset

    def _from_buffer(self, handle: Any, field: str, now: float, wall: float) -> Iterator[Reading]:
        seen = self._seen.get(field, 0)
        if wall * 1e6 < self._due.get(field, 0) and now - self._asked[field] < SELDOM:
            return
        self._asked[field] = now
        try:
            value_type, samples = self._buffers[field].since(handle, seen)
        except self._nvml.NVMLError as error:
            if error.value in LOST:
                raise
            if error.value in _NO_BUFFER:
                self._rated.add(field)
                return
            if error.value not in _NOTHING_NEW:
                yield Reading(self._entity, field, now, None, None, absence(error))
                return
            samples, value_type = [], 0
        latest = int(wall * 1e6) + 1000  # later ones are for the next read, or of before the wall clock was set back
        fresh = sorted(self._stamped(samples, value_type, seen, latest))
        if fresh:
            newest = fresh[-1][0]
            before = fresh[-2][0] if len(fresh) > 1 else seen or newest
            self._fresh[field], self._seen[field], self._due[field] = now, newest, 2 * newest - before
            if seen:  # the window before the first sample of all is not known
                yield from self._mean(field, seen, fresh, now - wall)
        elif now - self._fresh.setdefault(field, now) > LONGEST_GAP:
            yield Reading(self._entity, field, now, None, None, Absence.NO_DATA)

    def _stamped(self, samples: list[Any], value_type: int, seen: int, latest: int) -> Iterator[tuple[int, float]]:
        if samples:
            kind = type(samples[0])
            stamp_of, value_of = kind.timeStamp.__get__, kind.sampleValue.__get__  # plain C fields: see gpm.py
            for sample in samples:
                stamp = stamp_of(sample)
                if seen < stamp <= latest:
                    yield stamp, number(value_of(sample), value_type)

    def _mean(self, field: str, seen: int, fresh: list[tuple[int, float]], offset: float) -> Iterator[Reading]:
        """One reading over all samples, each weighed by its window."""
        total, start = 0.0, seen
        if fresh[0][0] - seen > LONGEST_GAP * 1e6:
            start, fresh = fresh[0][0], fresh[1:]
        before = start
        for stamp, percent in fresh:
            total += percent * (stamp - before)
            before = stamp
        if before > start:
            mean = total / (before - start) / 100
            yield Reading(self._entity, field, before / 1e6 + offset, mean, start / 1e6 + offset)

    def _from_rates(self, handle: Any, now: float) -> Iterator[Reading]:
        start, self._last = self._last, now
        try:
            rates = self._nvml.nvmlDeviceGetUtilizationRates(handle)
        except self._nvml.NVMLError as error:
            if error.value in LOST:
                raise
            self._last = None
            for field in sorted(self._rated):
                yield Reading(self._entity, field, now, None, None, absence(error))
            return
        if start is None or now <= start:
            return
        values = {"busy": rates.gpu, "memory_busy": rates.memory}
        for field in sorted(self._rated):
            yield Reading(self._entity, field, now, values[field] / 100, start)


class Buffer:
    """The driver's ring of samples of one kind, of one board."""

    def __init__(self, nvml: Any, kind: int) -> None:
        """``kind``: nvml.h nvmlSamplingType_t."""
        self._kind, self._type = ctypes.c_uint(kind), ctypes.c_uint()
        self._room = ReusedArray(nvml, "nvmlDeviceGetSamples", nvml.c_nvmlSample_t, RING)

    def since(self, handle: Any, seen: int) -> tuple[int, list[Any]]:
        """(nvmlValueType_t, samples later than ``seen``, microseconds). NVMLError, also when there is none. Of more
        than there is room for the driver gives a part, and the rest at the next call."""
        after, of = ctypes.c_ulonglong(seen), ctypes.byref(self._type)
        samples = self._room.filled(lambda call, count, array: call(handle, self._kind, after, of, count, array))
        return self._type.value, samples
