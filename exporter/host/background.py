"""Passes over the host in a thread of its own, less often than GPUs are sampled: a pass reads hundreds of files."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from exporter.host.reading import HostReading, RdmaPort
from exporter.host.view import HostView

if TYPE_CHECKING:
    from exporter.host.reader import HostReader  # brings psutil

log = logging.getLogger(__name__)
STALE_PASSES = 3  # intervals after which a pass that did not come back leaves nothing to go by
INTERVAL = 5.0  # seconds; 8 holders with 16 children each cost 12 ms of CPU a pass


class HostBackground:
    """``view`` is the last pass; None before the first, and when the last is too long ago to be believed."""

    def __init__(self, reader: HostReader, monotonic: Callable[[], float], interval: float = INTERVAL) -> None:
        self._reader = reader
        self._monotonic = monotonic
        self._interval = interval
        self._holders: tuple[int, ...] = ()
        self._last: tuple[float, HostReading] | None = None
        self._problems: frozenset[str] = frozenset()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="host", daemon=True)
        self._view: HostView | None = None

    @property
    def view(self) -> HostView | None:
        fresh = self._last is not None and self._monotonic() - self._last[0] <= STALE_PASSES * self._interval
        return self._view if fresh else None

    def start(self) -> None:
        self._thread.start()

    def holders(self, pids: Iterable[int]) -> None:
        """The processes to look at in the next pass."""
        self._holders = tuple(sorted(set(pids)))

    def read(self) -> None:
        """One pass, now, in the caller's thread."""
        now, reading = self._monotonic(), self._reader.read(self._holders)
        for problem in reading.problems:
            if problem.what not in self._problems:
                log.warning("host: %s: %s (%s)", problem.what, problem.why, problem.remedy)
        self._problems = frozenset(problem.what for problem in reading.problems)
        if self._last is not None and now > self._last[0]:
            self._view = _view(self._last[1], reading, now - self._last[0])
        else:
            self._view = HostView(reading)
        self._last = (now, reading)

    def stop(self, timeout: float) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(timeout)

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self.read()
            except Exception:
                log.exception("the pass over the host failed in a way it did not foresee")
            self._stop.wait(self._interval)


def _view(before: HostReading, after: HostReading, seconds: float) -> HostView:
    pressure = {}
    for resource, now in after.pressure.items():
        then = before.pressure.get(resource)
        if now.some is not None and then is not None and then.some is not None:
            grown = now.some.seconds - then.some.seconds
            if grown >= 0:
                pressure[resource] = grown / seconds
    main = {}
    for pid, holder in after.processes.holders.items():
        old = before.processes.holders.get(pid)
        if old is None or old.started != holder.started:
            continue
        if holder.main_thread_cpu_seconds is not None and old.main_thread_cpu_seconds is not None:
            grown = holder.main_thread_cpu_seconds - old.main_thread_cpu_seconds
            if grown >= 0:
                main[pid] = grown / seconds
    old_ports = {(port.device, port.port): port for port in before.rdma}
    loads = [load for port in after.rdma for load in _loads(old_ports.get((port.device, port.port)), port, seconds)]
    return HostView(after, pressure, main, max(loads, default=None))


def _loads(before: RdmaPort | None, after: RdmaPort, seconds: float) -> Iterable[float]:
    if before is None or not after.bytes_per_second:
        return
    for old, new in (
        (before.receive_bytes, after.receive_bytes),
        (before.transmit_bytes, after.transmit_bytes),
    ):
        if old is not None and new is not None and new >= old:
            yield (new - old) / seconds / after.bytes_per_second
