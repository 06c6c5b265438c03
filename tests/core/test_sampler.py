"""One timer, hung and failing sources, and threads that do not pile up."""

from __future__ import annotations

import threading
import time

from exporter.clock import SystemClock, VirtualClock
from exporter.core.pipeline import Pipeline
from exporter.core.sampler import Sampler, run_fast, run_timed
from exporter.core.snapshot import Snapshot
from exporter.core.workers import InlineWorker, ThreadWorker
from exporter.model import Batch, SourceError
from tests.core.building import batch, device


class Steady:
    """Delivers busy 0.5 for every window; can be told to fail, hang or end."""

    def __init__(self, name: str = "steady", passes: int | None = None) -> None:
        self.name = name
        self.error: Exception | None = None
        self.gate = threading.Event()
        self.gate.set()
        self.closed = False
        self.reads = 0
        self._passes = passes
        self._last: float | None = None

    def read(self, now: float) -> Batch:
        self.reads += 1
        self.gate.wait(30)
        if self.error:
            raise self.error
        start, self._last = self._last, now
        if self._passes is not None and self.reads > self._passes:
            return Batch(self.name, now, (device(),), (), final=True)
        return (
            batch(start, now, {"busy": 0.5}, source=self.name)
            if start is not None
            else Batch(self.name, now, (device(),), ())
        )

    def close(self) -> None:
        self.closed = True


def test_virtual_time_is_exact_and_ends_with_the_source() -> None:
    clock = VirtualClock()
    shown: list[Snapshot] = []
    sampler = Sampler([InlineWorker(Steady(passes=100))], Pipeline(clock, 1.0), clock, shown.append, interval=1.0)
    run_fast(sampler, clock, 1.0, threading.Event())
    assert sampler.ended
    assert shown[-1].entities[0].totals.seconds["busy"] == 49.5
    assert [s.number for s in shown] == list(range(1, len(shown) + 1))


def test_an_error_of_any_kind_costs_one_read() -> None:
    clock = VirtualClock()
    source = Steady()
    sampler = Sampler([InlineWorker(source)], Pipeline(clock, 1.0), clock, lambda _: None, interval=1.0)
    sampler.tick()
    for error in (SourceError("connection refused", "start it"), ZeroDivisionError("bug")):
        source.error = error
        clock.advance(1.0)
        (view,) = sampler.tick().sources
        assert not view.up
        assert str(error) in view.reason
    source.error = None
    clock.advance(1.0)
    (view,) = sampler.tick().sources
    assert view.up
    assert (view.reads, view.failures, view.reason) == (4, 2, "")


def test_a_hung_source_delays_neither_the_others_nor_the_snapshots() -> None:
    clock = SystemClock()
    hung, fine = Steady("hung"), Steady("fine")
    shown: list[Snapshot] = []
    workers = [ThreadWorker(hung), ThreadWorker(fine)]
    sampler = Sampler(workers, Pipeline(clock, 0.05), clock, shown.append, interval=0.05)
    sampler.tick(patience=1.0)
    hung.gate.clear()
    stop = threading.Event()
    runner = threading.Thread(target=run_timed, args=(sampler, 0.05, stop))
    threads = threading.active_count()
    runner.start()
    time.sleep(1.0)
    assert threading.active_count() == threads + 1  # the runner; no thread a read
    stop.set()
    runner.join(5)
    assert not runner.is_alive()
    assert len(shown) >= 10
    assert hung.reads == 2
    assert fine.reads >= 10
    started = time.monotonic()
    sampler.close(0.2)
    assert time.monotonic() - started < 2.0
    assert fine.closed
    hung.gate.set()


def test_a_hung_source_is_said_to_be_down_and_comes_back() -> None:
    clock = VirtualClock()
    source = Steady()
    sampler = Sampler([ThreadWorker(source)], Pipeline(clock, 1.0), clock, lambda _: None, interval=1.0)
    assert sampler.tick(patience=5.0).sources[0].up
    source.gate.clear()
    for _ in range(10):
        clock.advance(1.0)
        snapshot = sampler.tick()
    assert not snapshot.sources[0].up
    assert "no answer" in snapshot.sources[0].reason
    assert not snapshot.entities[0].means
    source.gate.set()
    clock.advance(1.0)
    assert sampler.tick(patience=5.0).sources[0].up
    sampler.close(1.0)
