"""Reads the host in a background thread, less often than GPUs are sampled: a pass reads hundreds of files."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from exporter.background.freshness import LastKnown, lifetime
from exporter.background.once import Reported
from exporter.background.repeating import RepeatingTask
from exporter.host.reading import HostReading, RdmaPort
from exporter.host.view import HostView

if TYPE_CHECKING:
    from exporter.host.reader import HostReader  # brings psutil

log = logging.getLogger(__name__)
INTERVAL = 5.0  # seconds; 8 holders with 16 children each cost 12 ms of CPU a pass


class HostBackground:
    """``view`` is the last pass; None before the first, and when the last is too old."""

    def __init__(self, reader: HostReader, monotonic: Callable[[], float], interval: float = INTERVAL) -> None:
        self._reader = reader
        self._monotonic = monotonic
        self._interval = interval
        self._holders: tuple[int, ...] = ()
        self._last: tuple[float, HostReading] | None = None
        self._view: LastKnown[HostView] = LastKnown(lifetime(interval))
        self._reported: Reported[str] = Reported()
        self._task = RepeatingTask("host", self._step)

    @property
    def view(self) -> HostView | None:
        return self._view.fresh(self._monotonic())

    def start(self) -> None:
        self._task.start()

    def holders(self, pids: Iterable[int]) -> None:
        """Set the processes to read in the next pass."""
        self._holders = tuple(sorted(set(pids)))

    def read(self) -> None:
        """One pass, now, in the caller's thread."""
        now, reading = self._monotonic(), self._reader.read(self._holders)
        new = self._reported.new(problem.what for problem in reading.problems)
        for problem in reading.problems:
            if problem.what in new:
                log.warning("host: %s: %s (%s)", problem.what, problem.why, problem.remedy)
        if self._last is not None and now > self._last[0]:
            view = _view(self._last[1], reading, now - self._last[0])
        else:
            view = HostView(reading)
        self._view.update(view, now)
        self._last = (now, reading)

    def stop(self, timeout: float) -> None:
        self._task.stop()
        self._task.join(timeout)

    def _step(self) -> float:
        try:
            self.read()
        except Exception:
            log.exception("reading the host: unexpected error")
        return self._interval


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
