"""One daemon and one Prometheus for all attacks: what one of them breaks, the next one sees."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import psutil
import pytest

from exporter.web.limits import Limits
from tests.end_to_end.processes import Daemon, Prometheus, daemon, prometheus, wait_for

LIMITS = Limits()


@dataclass(frozen=True)
class Held:
    """What a process holds."""

    threads: int
    descriptors: int
    resident: int  # bytes


class Attacked:
    """A daemon, and the Prometheus that watches it."""

    def __init__(self, running: Daemon, watching: Prometheus) -> None:
        self.port = running.port
        self._daemon, self._prometheus = running, watching
        self._process = psutil.Process(running.process.pid)
        self.before = self.held()

    def held(self) -> Held:
        return Held(self._process.num_threads(), self._process.num_fds(), self._process.memory_info().rss)

    def count(self, event: str) -> float:
        """Of the daemon's own counter of what happened to connections."""
        return self._daemon.value("honest_gpu_web_connections_total", event=event) or 0.0

    def assert_counted(self, event: str, times: float) -> None:
        """The counter comes to this value: what is served is the last window's."""
        wait_for(lambda: self.count(event) >= times, f"{event} is counted {times} times, not {self.count(event)}")
        assert self.count(event) == times

    def assert_bounded(self) -> None:
        """During an attack: a thread and a descriptor a slot, and for those that are ending; 1 MiB a slot."""
        now = self.held()
        assert now.threads <= self.before.threads + 2 * LIMITS.connections
        assert now.descriptors <= self.before.descriptors + 2 * LIMITS.connections + 4
        assert now.resident <= self.before.resident + (LIMITS.connections << 20)

    def assert_unharmed(self) -> None:
        """After it: everything is given back, and no scrape has failed since the beginning of all attacks."""

        def released() -> bool:
            now = self.held()
            most = self.before.descriptors + 4  # Prometheus, and the one who asks
            return now.threads <= self.before.threads + 3 and now.descriptors <= most

        wait_for(released, f"threads and descriptors are given back: {self.before} before")
        assert self.held().resident <= self.before.resident + (LIMITS.connections << 20)
        assert self._daemon.process.poll() is None
        assert "Traceback" not in self._daemon.log
        time.sleep(1.1)  # one more scrape
        assert self._prometheus.one("min_over_time(up[10m])") == 1
        assert self._prometheus.one("time() - timestamp(up)") < 5


@pytest.fixture(scope="package")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Attacked]:
    folder = tmp_path_factory.mktemp("attacked")
    with daemon(folder, "--source", "simulated", "--metrics.profile", "full") as running:
        running.ready()
        with prometheus(folder, running.url) as watching:
            wait_for(lambda: watching.query("up == 1"), "the first scrape")
            yield Attacked(running, watching)
