"""Plays a simulated node through the real sampler and pipeline, on a clock that moves when told to."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from exporter.clock import VirtualClock
from exporter.core.pipeline import Pipeline
from exporter.core.sampler import Sampler, run_fast
from exporter.core.snapshot import EntityView, Snapshot
from exporter.core.workers import InlineWorker
from exporter.model import Batch, Entity
from exporter.sources.simulated.node import SimulatedGpu, build_node
from exporter.sources.simulated.source import simulated_source
from exporter.sources.simulated.workloads import WORKLOADS

START = 1234.5  # of the clock: the source must not take its zero for its own


@dataclass(frozen=True)
class Played:
    """What came out of one run over all workloads, and what was written down for it."""

    tracks: Sequence[SimulatedGpu]
    snapshots: Sequence[Snapshot]
    windows: Sequence[tuple[float, float]]  # of sampling, in playing time
    seconds: float

    @property
    def views(self) -> dict[Entity, EntityView]:
        """The last state of each device."""
        return {view.device.entity: view for view in self.snapshots[-1].entities}


def play(interval: float, seconds: float, *, keep: bool = False) -> Played:
    """All workloads on one node, a board each, once. ``keep``: every Snapshot, not only the last."""
    names = tuple(WORKLOADS)
    source = simulated_source(names, len(names), loop=False, duration=seconds)
    clock, snapshots, ends = VirtualClock(START), list[Snapshot](), list[float]()

    def publish(snapshot: Snapshot) -> None:
        if not keep:
            snapshots.clear()
        snapshots.append(snapshot)

    def record(batch: Batch) -> None:
        if not batch.final:
            ends.append(batch.end - START)

    pipeline = Pipeline(clock, interval)
    sampler = Sampler([InlineWorker(source)], pipeline, clock, publish, interval=interval, record=record)
    run_fast(sampler, clock, interval, threading.Event())
    tracks = build_node([WORKLOADS[name] for name in names], len(names))
    return Played(tracks, snapshots, list(pairwise(ends)), seconds)
