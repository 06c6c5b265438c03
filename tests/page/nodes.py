"""Nodes whose pages the tests look at: each as a Published that holds what a daemon would."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

from bench.nodes import instances, snapshots
from exporter.assembly import Assembly
from exporter.attribution.background import SourceHealth
from exporter.attribution.holdings import Holding, Sharing, Workload
from exporter.attribution.view import AttributionView
from exporter.clock import VirtualClock
from exporter.core.pipeline import Pipeline
from exporter.core.sampler import Sampler
from exporter.core.snapshot import Snapshot
from exporter.core.workers import InlineWorker
from exporter.endpoints import Published, endpoints
from exporter.hardware.peaks import load as load_peaks
from exporter.hardware.stage import HardwareStage
from exporter.model import Batch, Source, SourceError
from exporter.sources.simulated.source import simulated_source
from exporter.state.stage import StateStage
from exporter.state.thresholds import Thresholds
from exporter.web.routes import Routes
from exporter.web.server import WebServer


class Failing:
    """A source that cannot be read any more after some seconds."""

    name = "simulated"

    def __init__(self, inner: Source, after: float) -> None:
        self._inner = inner
        self._after = after

    def read(self, now: float) -> Batch:
        if now > self._after:
            raise SourceError("the hostengine does not answer", "systemctl restart nvidia-dcgm")
        return self._inner.read(now)

    def close(self) -> None:
        self._inner.close()


def published() -> Published:
    """Without a Snapshot yet."""
    return Published(lambda _: {})


class Node:
    """A simulated node on virtual time, with all stages that need no driver."""

    def __init__(self, workloads: Sequence[str], gpus: int, seconds: int, fails_after: float = float("inf")) -> None:
        """Plays ``seconds`` that end now."""
        self.published = published()
        self._clock = VirtualClock(timestamp=time.time() - seconds)
        source = Failing(simulated_source(workloads, gpus, loop=True), fails_after)
        assembly = Assembly(self._publish, HardwareStage(load_peaks(None)), StateStage(Thresholds()))
        self._sampler = Sampler([InlineWorker(source)], Pipeline(self._clock, 1.0), self._clock, assembly, interval=1.0)
        for _ in range(seconds):
            self.second()

    def second(self) -> None:
        """One more window."""
        self._sampler.tick()
        self._clock.advance(1.0)

    @property
    def snapshot(self) -> Snapshot:
        """The last one."""
        rendered = self.published.current
        assert rendered is not None
        return rendered.snapshot

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Goes on in real time."""
        stop = threading.Event()

        def run() -> None:
            while not stop.wait(1.0):
                self.second()

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()

    def _publish(self, snapshot: Snapshot) -> None:
        self.published.publish(replace(snapshot, attribution=holders(snapshot)))


def holders(snapshot: Snapshot) -> AttributionView:
    """The first GPU is a pod's, the second is shared, the others are nobody's."""
    entities = [view.device.entity for view in snapshot.entities if view.present]
    pod = Workload(namespace="research", pod="llama-finetune-7f9c-worker-0", container="trainer")
    jobs = [Workload(job_id=number, user="alice", account="physics") for number in ("48213", "48217")]
    holdings = [Holding(entity, pod, Sharing.EXCLUSIVE) for entity in entities[:1]]
    holdings += [Holding(entity, job, Sharing.TIME_SLICED) for entity in entities[1:2] for job in jobs]
    return AttributionView(sources=[SourceHealth("kubernetes", True)], holdings=holdings)


def many_instances(boards: int = 8, each: int = 7) -> Published:
    """Boards cut into MIG instances, seen for some seconds."""
    made = published()
    for snapshot in snapshots(instances(boards, each), 5):
        made.publish(snapshot)
    return made


@contextlib.contextmanager
def serving(content: Published) -> Iterator[tuple[str, WebServer]]:
    """The web server of a daemon; the page's address."""
    server = WebServer(["127.0.0.1:0"], Routes(endpoints(content, "/metrics")))
    server.start()
    try:
        yield f"http://127.0.0.1:{server.addresses[0][1]}/", server
    finally:
        server.stop()
