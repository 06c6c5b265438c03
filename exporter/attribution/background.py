"""Reads one attribution source in a thread of its own, so that neither a scrape nor the sampler waits for it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from exporter.attribution.holdings import Allocations, AttributionError, Attributor, Holding
from exporter.model import Device, Entity

log = logging.getLogger(__name__)
STALE_AFTER = 60.0  # seconds without a success after which holders are not known any more


@dataclass(frozen=True, slots=True)
class SourceHealth:
    """What is known of one attribution source."""

    name: str
    up: bool
    last_success: float | None = None  # Unix seconds
    unresolved: Mapping[str, int] = field(default_factory=dict)
    reason: str = ""
    all_told: bool = True  # False: it knows of a GPU that is held, and not which


class Background:
    """Repeats reads of one attributor; ``holdings`` and ``health`` are those of the last one."""

    def __init__(
        self,
        attributor: Attributor,
        interval: float,
        monotonic: Callable[[], float],
        timestamp: Callable[[], float],
    ) -> None:
        self.attributor = attributor
        self._interval = interval
        self._monotonic, self._timestamp = monotonic, timestamp
        self._devices: Sequence[Device] = ()
        self._latest: tuple[float, float, Allocations] | None = None  # (monotonic, Unix seconds, what was read)
        self._reason = "not read yet"
        self._stop, self._wake = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"attribution-{attributor.name}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def devices(self, devices: Sequence[Device]) -> None:
        """The devices to look for; a change is looked at at once."""
        if list(devices) != list(self._devices):
            self._devices = tuple(devices)
            self._wake.set()

    def read(self) -> None:
        """One read, now, in the caller's thread."""
        try:
            allocations = self.attributor.read(self._devices)
        except AttributionError as error:
            self._failed(f"{error}{f' ({error.remedy})' if error.remedy else ''}")
        except Exception as error:
            log.exception("attribution %s failed in a way it did not foresee", self.attributor.name)
            self._failed(f"{type(error).__name__}: {error}")
        else:
            if self._reason:
                log.info("attribution %s is read", self.attributor.name)
            self._latest, self._reason = (self._monotonic(), self._timestamp(), allocations), ""

    def _failed(self, reason: str) -> None:
        if reason != self._reason:
            log.warning("attribution %s cannot be read: %s", self.attributor.name, reason)
        self._reason = reason

    @property
    def holdings(self) -> Sequence[Holding]:
        """Who holds what; nobody when the last success is too long ago to be believed."""
        fresh = self._fresh
        return () if fresh is None else fresh.holdings

    @property
    def allocatable(self) -> frozenset[Entity] | None:
        """What may be handed out at all; None: not known."""
        fresh = self._fresh
        return None if fresh is None else fresh.allocatable

    @property
    def _fresh(self) -> Allocations | None:
        latest = self._latest
        if latest is None or self._monotonic() - latest[0] > max(STALE_AFTER, 3 * self._interval):
            return None
        return latest[2]

    @property
    def health(self) -> SourceHealth:
        latest = self._latest
        return SourceHealth(
            self.attributor.name,
            up=not self._reason and self._fresh is not None,
            last_success=None if latest is None else latest[1],
            unresolved={} if latest is None else latest[2].unresolved,
            reason=self._reason,
            all_told=latest is None or latest[2].all_told,
        )

    def stop(self, timeout: float) -> None:
        """End the thread; one that hangs in a read is left behind."""
        self._stop.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(timeout)

    def _run(self) -> None:
        while not self._stop.is_set():
            if self._devices:
                self.read()
            self._wake.wait(self._interval)
            self._wake.clear()
        self.attributor.close()
