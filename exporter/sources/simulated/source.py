"""The source `simulated`."""

from __future__ import annotations

from collections.abc import Sequence

from exporter.sources.playback import TimelineSource
from exporter.sources.simulated.node import build_node
from exporter.sources.simulated.script import PATTERN
from exporter.sources.simulated.workloads import WORKLOADS, named

DURATION = 600.0


def simulated_source(workloads: Sequence[str], gpus: int, *, loop: bool, duration: float = DURATION) -> TimelineSource:
    """``gpus`` boards that play the named workloads in turn; all workloads, in order, if none is named.

    ``duration``: seconds after which the source ends; with ``loop`` it does not end. ValueError for an unknown name, or
    for more names than boards.
    """
    if len(workloads) > gpus:
        raise ValueError(f"{len(workloads)} workloads need as many GPUs, there are {gpus}")
    chosen = [named(name) for name in workloads or WORKLOADS]
    tracks = build_node(chosen, gpus)
    played = dict.fromkeys(track.workload for track in tracks)
    return TimelineSource(
        "simulated",
        [(track.device, track.timeline) for track in tracks],
        loop=loop,
        duration=PATTERN,
        length=duration,
        details={"simulated": "true", "workload": ",".join(played)},
    )
