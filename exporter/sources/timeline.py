"""The one event-timeline model: kernels and copies in, what a GPU did in any window out.

Everything is a piecewise constant function of time with its integral kept, so that a mean over any window is exact and
costs two binary searches. Traces and simulated workloads both go through it.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from exporter.fields import FIELDS, Kind

_NO_PIPES: Mapping[str, float] = MappingProxyType({})
Direction = Literal["host_to_device", "device_to_host", "peer", "device"]
_COPY_CHANNEL: Mapping[str, str] = {"host_to_device": "pcie_receive", "device_to_host": "pcie_transmit"}


class StepFunction:
    """Piecewise constant over [0, duration]; zero is not special."""

    __slots__ = ("_integrals", "_times", "_values", "duration")

    def __init__(self, times: array[float], values: array[float], duration: float) -> None:
        """``values[i]`` holds from ``times[i]`` to the next time; ``times[0]`` is 0."""
        self._times, self._values, self.duration = times, values, duration
        self._integrals = array("d", [0.0])
        total = 0.0
        for k in range(len(times) - 1):
            total += values[k] * (times[k + 1] - times[k])
            self._integrals.append(total)

    @classmethod
    def from_segments(
        cls, segments: Iterable[tuple[float, float, float]], duration: float, rest: float = 0.0
    ) -> StepFunction:
        """From sorted, non-overlapping (start, end, value); ``rest`` holds elsewhere. ValueError if they overlap."""
        times, values = array("d", [0.0]), array("d", [rest])
        now = 0.0
        for start, end, value in segments:
            if start < now - 1e-12 or end < start:
                raise ValueError(f"segment ({start}, {end}) overlaps what ends at {now}")
            for time, level in ((start, value), (end, rest)):
                if time <= times[-1]:
                    values[-1] = level
                else:
                    times.append(time)
                    values.append(level)
            now = end
        return cls(times, values, duration)

    def at(self, time: float) -> float:
        """The value that holds at ``time``."""
        return self._values[max(0, bisect_right(self._times, time) - 1)]

    def integral(self, start: float, end: float) -> float:
        """Over (start, end], clipped to [0, duration]."""
        start, end = max(0.0, start), min(end, self.duration)
        return self._upto(end) - self._upto(start) if end > start else 0.0

    def _upto(self, time: float) -> float:
        k = max(0, bisect_right(self._times, time) - 1)
        return self._integrals[k] + self._values[k] * (time - self._times[k])


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel on the GPU. ``sm``: share of SMs with a resident warp, 0..1; None when the launch size is not known.

    ``pipes``: other channels while it runs (tensor, dram, nvlink_transmit, ...); only the simulator knows them.
    """

    start: float
    end: float
    sm: float | None
    occupancy: float | None = None
    collective: bool = False
    pipes: Mapping[str, float] = field(default_factory=lambda: _NO_PIPES)


@dataclass(frozen=True, slots=True)
class Copy:
    """A copy of ``bytes``; host copies cross PCIe, evenly over their time. Copies are not busy time."""

    start: float
    end: float
    bytes: float
    direction: Direction


class Timeline:
    """What one GPU did over [0, duration]. Channels are field names of exporter.fields, plus "collective"."""

    def __init__(self, duration: float, functions: Mapping[str, StepFunction], unknown: StepFunction | None) -> None:
        """``unknown``: above 0 while a kernel runs whose share of the SMs is not known."""
        self.duration = duration
        self._functions = dict(functions)
        self._unknown = unknown

    @property
    def channels(self) -> frozenset[str]:
        return frozenset(self._functions)

    def integral(self, channel: str, start: float, end: float) -> float | None:
        """Over (start, end]; None when the channel is not known in all of it."""
        if self._unknown is not None and channel in ("sm", "sm_occupancy") and self._unknown.integral(start, end) > 0:
            return None
        return self._functions[channel].integral(start, end)

    def mean(self, channel: str, start: float, end: float) -> float | None:
        """Over (start, end], which must lie inside [0, duration] and not be empty."""
        total = self.integral(channel, start, end)
        return None if total is None else total / (end - start)

    def at(self, channel: str, time: float) -> float:
        """The value that holds at ``time``."""
        return self._functions[channel].at(time)


def build(
    kernels: Iterable[Kernel],
    copies: Iterable[Copy] = (),
    *,
    duration: float | None = None,
    levels: Mapping[str, StepFunction] = MappingProxyType({}),
) -> Timeline:
    """The timeline of one GPU. Kernels and copies may come in any order.

    busy is the union of kernels; concurrent kernels add up to at most 1 on every ratio channel. ``levels`` are further
    channels as they are (power, clocks, ...). ``duration`` None: until the last event ends.
    """
    sums: dict[str, _Sum] = {"busy": _Sum(), "sm": _Sum(), "sm_occupancy": _Sum(), "collective": _Sum()}
    unknown, no_occupancy, last = _Sum(), False, 0.0
    for kernel in kernels:
        last = max(last, kernel.end)
        sums["busy"].add(kernel.start, kernel.end, 1.0)
        if kernel.sm is None:
            unknown.add(kernel.start, kernel.end, 1.0)
        else:
            sums["sm"].add(kernel.start, kernel.end, kernel.sm)
        if kernel.occupancy is None:
            no_occupancy = True
        else:
            sums["sm_occupancy"].add(kernel.start, kernel.end, kernel.occupancy)
        if kernel.collective:
            sums["collective"].add(kernel.start, kernel.end, 1.0)
        for channel, value in kernel.pipes.items():
            sums.setdefault(channel, _Sum()).add(kernel.start, kernel.end, value)
    for copy in copies:
        last = max(last, copy.end)
        link = _COPY_CHANNEL.get(copy.direction)
        if link is not None and copy.end > copy.start:
            sums.setdefault(link, _Sum()).add(copy.start, copy.end, copy.bytes / (copy.end - copy.start))
    if no_occupancy:
        del sums["sm_occupancy"]
    length = last if duration is None else duration
    functions = {}
    while sums:  # each is freed when its function is there: there may be millions of kernels
        channel, total = sums.popitem()
        functions[channel] = total.function(length, _cap(channel))
    return Timeline(length, functions | dict(levels), unknown.function(length, 1.0) if unknown else None)


def _cap(channel: str) -> float:
    """Ratios cannot exceed 1, however many kernels run at once; rates add up."""
    spec = FIELDS.get(channel)
    return 1.0 if spec is None or spec.kind is Kind.RATIO else float("inf")


class _Sum:
    """Adds up overlapping intervals: a sweep over their starts and ends."""

    def __init__(self) -> None:
        self._starts, self._ends, self._values = array("d"), array("d"), array("d")

    def __bool__(self) -> bool:
        return bool(self._starts)

    def add(self, start: float, end: float, value: float) -> None:
        if end > start and value != 0.0:
            self._starts.append(start)
            self._ends.append(end)
            self._values.append(value)

    def function(self, duration: float, cap: float) -> StepFunction:
        opening, closing = _order(self._starts), _order(self._ends)
        times, values = array("d", [0.0]), array("d", [0.0])
        level, active, i, j = 0.0, 0, 0, 0
        while j < len(closing):
            begins = i < len(opening) and self._starts[opening[i]] < self._ends[closing[j]]
            if begins:
                time, level, active, i = self._starts[opening[i]], level + self._values[opening[i]], active + 1, i + 1
            else:
                time, level, active, j = self._ends[closing[j]], level - self._values[closing[j]], active - 1, j + 1
            if active == 0:
                level = 0.0  # no rest of rounding is carried on
            value = min(max(level, 0.0), cap)
            if time <= times[-1]:
                values[-1] = value
            else:
                times.append(time)
                values.append(value)
        return StepFunction(times, values, duration)


def _order(times: array[float]) -> array[int]:
    """The indices of ``times``, earliest first."""
    return array("q", sorted(range(len(times)), key=times.__getitem__))
