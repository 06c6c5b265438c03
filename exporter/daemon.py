"""The running daemon: sampler thread, web server, signals. Built by cli from the settings."""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Callable, Iterable, Sequence

from exporter.clock import ScaledClock, SystemClock, VirtualClock
from exporter.core.pipeline import Pipeline
from exporter.core.sampler import Sampler, run_fast, run_timed
from exporter.core.snapshot import Snapshot
from exporter.core.workers import InlineWorker, ThreadWorker, Worker
from exporter.endpoints import Published
from exporter.model import Batch, Source
from exporter.summary import summary
from exporter.web.server import WebServer

log = logging.getLogger(__name__)
STOP_SECONDS = 0.8  # for the sources, and again for the web server: well under the 2 s that are promised


class Sampling:
    """Sources and sampler on the clock that the speed asks for. ``speed`` None: as fast as possible."""

    def __init__(
        self,
        sources: Sequence[Source],
        publish: Callable[[Snapshot], None],
        *,
        interval: float,
        speed: float | None = 1.0,
        record: Callable[[Batch], None] | None = None,
    ) -> None:
        self._interval = interval
        self._speed = speed
        self._clock: SystemClock | ScaledClock | VirtualClock
        if speed is None:
            self._clock = VirtualClock(timestamp=SystemClock().timestamp())
        else:
            self._clock = SystemClock() if speed == 1.0 else ScaledClock(speed)
        worker: Callable[[Source], Worker] = InlineWorker if speed is None else ThreadWorker
        pipeline = Pipeline(self._clock, interval)
        workers = [worker(source) for source in sources]
        self._sampler = Sampler(workers, pipeline, self._clock, publish, interval=interval, record=record)

    def run(self, stop: threading.Event) -> None:
        """Until told to stop or the source has ended."""
        if isinstance(self._clock, VirtualClock):
            run_fast(self._sampler, self._clock, self._interval, stop)
        else:
            run_timed(self._sampler, self._interval / (self._speed or 1.0), stop)

    @property
    def ended(self) -> bool:
        """True when the source has ended by itself."""
        return self._sampler.ended

    def close(self) -> None:
        """Close the source, or leave it behind if it hangs."""
        self._sampler.close(STOP_SECONDS)


def wait_for_signal(wanted: Iterable[signal.Signals], timeout: float | None = None) -> int | None:
    """The next of these signals, which must be blocked; None when ``timeout`` seconds pass without.

    Taken by waiting, not by handlers: a handler that sets an Event may run while its own thread holds the Event's lock.
    """
    if timeout is None:
        return signal.sigwait(wanted)
    taken = signal.sigtimedwait(wanted, timeout)
    return None if taken is None else taken.si_signo


class Daemon:
    """Runs until SIGTERM or SIGINT; SIGHUP calls ``reload``."""

    SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

    def __init__(self, sampling: Sampling, published: Published, web: WebServer, reload: Callable[[], None]) -> None:
        self._sampling = sampling
        self._published = published
        self._web = web
        self._reload = reload
        self._stop = threading.Event()
        self._failed = False

    def run(self) -> int:
        """Serve until stopped; the exit status. Raises ListenError when an address cannot be bound."""
        signal.pthread_sigmask(signal.SIG_BLOCK, self.SIGNALS)  # before any thread is started: they inherit it
        sampler = threading.Thread(target=self._sample, name="sampler", daemon=True)
        self._web.start()
        for host, port in self._web.addresses:
            log.info("listening on %s", _address(host, port))
        sampler.start()
        while wait_for_signal(self.SIGNALS) == signal.SIGHUP:
            self._reload()
        self._stop.set()
        sampler.join(STOP_SECONDS)
        self._sampling.close()
        self._web.stop(STOP_SECONDS)
        log.info("stopped")
        return 1 if self._failed else 0

    def _sample(self) -> None:
        try:
            self._sampling.run(self._stop)
        except Exception:
            log.exception("the sampler failed; stopping. This is a bug: please report it with this traceback.")
            self._failed = True
            os.kill(os.getpid(), signal.SIGTERM)
            return
        rendered = self._published.current
        if self._sampling.ended and rendered is not None:
            print(summary(rendered.snapshot), flush=True)
            log.info("the source has ended; its final values are served until the exporter is stopped")


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
