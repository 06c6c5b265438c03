"""What really happened on a simulated device: exact integrals of its timeline, computed independently of the exporter.

Seconds and bytes of a channel are exact over any time. The parts are not linear (min and max of several channels), so
they depend on the length of the windows: the contract of the exporter's counters is the parts of the means of each
sampling window. ``finest`` gives the parts at every instant, to show how far apart the two are: hollow and idle agree
wherever the claim is never below SM active, and working + stalled is the SM-active time either way; only the split
between working and stalled moves.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise

from exporter.fields import PIPES
from exporter.sources.simulated.node import SimulatedGpu
from exporter.sources.simulated.script import PATTERN

PARTS = ("working", "stalled", "hollow", "idle")


def amount(track: SimulatedGpu, channel: str, start: float, end: float) -> float:
    """The integral of a channel over (start, end] of playing time: seconds, bytes, or joules of power."""
    return _since_start(track, channel, end) - _since_start(track, channel, start)


def parts(track: SimulatedGpu, windows: Iterable[tuple[float, float]]) -> Mapping[str, float]:
    """Seconds of each part, from the means over each of these windows of playing time."""
    seconds = dict.fromkeys(PARTS, 0.0)
    for start, end in windows:
        for part, share in _split(track, start, end).items():
            seconds[part] += share * (end - start)
    return seconds


def finest(track: SimulatedGpu) -> Mapping[str, float]:
    """Seconds of each part during one pattern, from the values at every instant: between events nothing changes."""
    kernels = track.activity.kernels
    times = sorted({0.0, PATTERN, *(k.start for k in kernels), *(k.end for k in kernels)})
    return parts(track, pairwise(times))


def _split(track: SimulatedGpu, start: float, end: float) -> Mapping[str, float]:
    """The parts of docs/honest-numbers.md, of the means over (start, end]. On an instance the engine is the claim."""
    instance = track.device.entity.gpu_instance is not None

    def mean(channel: str) -> float:
        return amount(track, channel, start, end) / (end - start)

    sm = mean("sm")
    claimed = max(mean("graphics_engine" if instance else "busy"), sm)
    working = min(sm, max(mean(pipe) for pipe in PIPES))
    return {"working": working, "stalled": sm - working, "hollow": claimed - sm, "idle": 1.0 - claimed}


def _since_start(track: SimulatedGpu, channel: str, time: float) -> float:
    whole, rest = divmod(time, PATTERN)
    timeline = track.timeline
    once, begun = timeline.integral(channel, 0.0, PATTERN), timeline.integral(channel, 0.0, rest)
    assert once is not None  # a simulated kernel's share of the SMs is always known
    assert begun is not None
    return whole * once + begun
