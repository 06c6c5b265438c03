"""The source through the real pipeline: what comes out in the end."""

from exporter.clock import VirtualClock
from exporter.core.pipeline import Pipeline
from exporter.core.snapshot import EntityView, Snapshot
from exporter.exposition import text
from exporter.metrics.catalogue import GROUPS, Selection, samples
from exporter.metrics.family import Profile
from exporter.model import Entity, Problem, SourceError
from exporter.trust import ProfilingState

from .driving import SHIFT, Driver


class Observer:
    """Reads every ``step`` seconds, as the sampler does."""

    def __init__(self, driver: Driver, step: float = 1.0) -> None:
        self.driver = driver
        self._step = step
        self._reads = 0
        self._clock = VirtualClock(SHIFT)
        self._pipeline = Pipeline(self._clock, step)
        self.errors: list[str] = []

    def until(self, end: float) -> dict[Entity, EntityView]:
        """Reads each second up to and with ``end``; what is published then, by entity."""
        return {view.device.entity: view for view in self.snapshot(end).entities}

    def served(self, end: float) -> str:
        """What a scrape would get then, every family of the catalogue."""
        return text(samples(self.snapshot(end), GROUPS, Selection(Profile.FULL))).decode()

    def snapshot(self, end: float) -> Snapshot:
        """The same as a whole."""
        while (at := self._reads * self._step) <= end + 1e-6:
            self._reads += 1
            try:
                self._pipeline.absorb(self.driver.read(at))
            except SourceError as error:
                self.errors.append(str(error))
                self._pipeline.failed("dcgm", Problem("dcgm", str(error), error.remedy))
            published = self._pipeline.publish() if at + self._step > end + 1e-6 else None
            self._clock.advance(self._step)
            if published is not None:
                return published
        raise ValueError(f"{end} is past")

    def state(self, end: float, entity: Entity) -> ProfilingState:
        return self.until(end)[entity].profiling
