"""The only timer. Reads every source in the background and publishes Snapshots: in real time, or on a virtual clock."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from exporter.background.freshness import lifetime
from exporter.background.once import Condition
from exporter.clock import VirtualClock
from exporter.core.pipeline import Pipeline
from exporter.core.snapshot import Snapshot, SourceView
from exporter.core.workers import Outcome, Worker
from exporter.model import Batch, Clock, Problem, SourceError

log = logging.getLogger(__name__)
HUNG_AFTER = 5.0  # seconds without an answer after which a source counts as hung; at least three intervals


@dataclass(slots=True)
class _Feed:
    """One source with its worker."""

    worker: Worker
    asked: float = 0.0
    condition: Condition = field(default_factory=Condition)
    reads: int = 0
    failures: int = 0
    seconds: float = 0.0
    final: bool = False

    def view(self) -> SourceView:
        name = self.worker.source.name
        condition = self.condition
        return SourceView(name, condition.up, self.reads, self.failures, self.seconds, condition.reason)


class Sampler:
    """Drives the pipeline. ``tick`` is one sampling window; ``run_timed`` and ``run_fast`` repeat it."""

    def __init__(
        self,
        workers: Sequence[Worker],
        pipeline: Pipeline,
        clock: Clock,
        publish: Callable[[Snapshot], None],
        *,
        interval: float,
        record: Callable[[Batch], None] | None = None,
    ) -> None:
        self._feeds = [_Feed(worker) for worker in workers]
        self._pipeline = pipeline
        self._clock = clock
        self._publish = publish
        self._interval = interval
        self._hung_after = lifetime(interval, HUNG_AFTER)
        self._record = record

    @property
    def ended(self) -> bool:
        """True when every source has ended by itself."""
        return bool(self._feeds) and all(feed.final for feed in self._feeds)

    def tick(self, patience: float = 0.0) -> Snapshot:
        """One window: ask every idle source, wait up to ``patience`` real seconds in all, take the results, publish."""
        now = self._clock.monotonic()
        for feed in self._feeds:
            if not feed.final and feed.worker.submit(now):
                feed.asked = now
        deadline = time.monotonic() + patience
        for feed in self._feeds:
            if feed.final:
                continue
            outcome = feed.worker.outcome(max(0.0, deadline - time.monotonic()))
            if outcome is not None:
                self._take(feed, outcome)
            elif now - feed.asked > self._hung_after and feed.condition.up:
                self._fail(feed, SourceError(f"no answer for {now - feed.asked:.0f} s", "check the driver: dmesg"))
        snapshot = self._pipeline.publish([feed.view() for feed in self._feeds])
        self._publish(snapshot)
        return snapshot

    def close(self, timeout: float) -> None:
        """Close all sources, side by side, within ``timeout`` real seconds in all."""
        deadline = time.monotonic() + timeout
        for feed in self._feeds:
            feed.worker.stop()
        for feed in self._feeds:
            feed.worker.join(max(0.0, deadline - time.monotonic()))

    def _take(self, feed: _Feed, outcome: Outcome) -> None:
        feed.reads += 1
        feed.seconds = outcome.seconds
        if outcome.batch is None:
            self._fail(feed, outcome.error or SourceError("nothing was read"))
            return
        if feed.condition.worked() and feed.reads > 1:
            log.info("source %s delivers again", feed.worker.source.name)
        feed.final = outcome.batch.final
        self._pipeline.absorb(outcome.batch)
        if self._record:
            self._record(outcome.batch)

    def _fail(self, feed: _Feed, error: SourceError) -> None:
        name, reason = feed.worker.source.name, str(error)
        feed.failures += 1
        if feed.condition.failed(reason):
            log.warning("source %s cannot be read: %s%s", name, reason, f" ({error.remedy})" if error.remedy else "")
        self._pipeline.failed(name, Problem(f"source {name} cannot be read", reason, error.remedy))


PATIENCE = 0.5  # share of an interval for which a window waits for slow sources; those are taken up at the next one


def run_timed(sampler: Sampler, interval: float, stop: threading.Event) -> None:
    """One window every ``interval`` real seconds until ``stop`` is set or all sources have ended.

    The schedule does not drift: windows start at multiples of the interval, and missed ones are left out, not made up.
    """
    origin = time.monotonic()
    while not stop.is_set() and not sampler.ended:
        sampler.tick(patience=interval * PATIENCE)
        elapsed = time.monotonic() - origin
        stop.wait((math.floor(elapsed / interval) + 1) * interval - elapsed)


def run_fast(sampler: Sampler, clock: VirtualClock, interval: float, stop: threading.Event) -> None:
    """Windows back to back, each ``interval`` virtual seconds long, until all sources have ended."""
    while not stop.is_set():
        sampler.tick()
        if sampler.ended:
            return
        clock.advance(interval)
