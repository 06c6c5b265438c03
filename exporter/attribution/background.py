"""Reads one attribution source in a thread of its own, so that neither a scrape nor the sampler waits for it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from exporter.attribution.holdings import Allocations, AttributionError, Attributor, Holding
from exporter.background.freshness import LastKnown, lifetime
from exporter.background.once import Condition
from exporter.background.repeating import RepeatingTask
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


class AttributionBackground:
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
        self._last: LastKnown[tuple[float, Allocations]] = LastKnown(lifetime(interval, STALE_AFTER))  # Unix seconds
        self._condition = Condition()
        self._task = RepeatingTask(f"attribution-{attributor.name}", self._step, attributor.close)

    def start(self) -> None:
        self._task.start()

    def devices(self, devices: Sequence[Device]) -> None:
        """The devices to look for; a change is looked at at once."""
        if list(devices) != list(self._devices):
            self._devices = tuple(devices)
            self._task.wake()

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
            self._last.update((self._timestamp(), allocations), self._monotonic())
            if self._condition.worked():
                log.info("attribution %s is read", self.attributor.name)

    def _failed(self, reason: str) -> None:
        if self._condition.failed(reason):
            log.warning("attribution %s cannot be read: %s", self.attributor.name, reason)

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
        last = self._last.fresh(self._monotonic())
        return None if last is None else last[1]

    @property
    def health(self) -> SourceHealth:
        success, allocations = self._last.value or (None, None)
        return SourceHealth(
            self.attributor.name,
            up=self._condition.up and self._fresh is not None,
            last_success=success,
            unresolved={} if allocations is None else allocations.unresolved,
            reason=self._condition.reason,
            all_told=allocations is None or allocations.all_told,
        )

    def stop(self, timeout: float) -> None:
        """End the thread; one that hangs in a read is left behind."""
        self._task.stop()
        self._task.join(timeout)

    def _step(self) -> float:
        if self._devices:
            self.read()
        return self._interval
