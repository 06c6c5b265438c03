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
    """Reads once a second, as the sampler does."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self._clock = VirtualClock(SHIFT)
        self._pipeline = Pipeline(self._clock, 1.0)
        self.errors: list[str] = []

    def until(self, end: float) -> dict[Entity, EntityView]:
        """Reads each second up to and with ``end``; what is published then, by entity."""
        return {view.device.entity: view for view in self.snapshot(end).entities}

    def served(self, end: float) -> str:
        """What a scrape would get then, every family of the catalogue."""
        return text(samples(self.snapshot(end), GROUPS, Selection(Profile.FULL))).decode()

    def snapshot(self, end: float) -> Snapshot:
        """The same as a whole."""
        while (at := round(self._clock.monotonic() - SHIFT)) <= end:
            try:
                self._pipeline.absorb(self.driver.read(float(at)))
            except SourceError as error:
                self.errors.append(str(error))
                self._pipeline.failed("dcgm", Problem("dcgm", str(error), error.remedy))
            if at == end:
                published = self._pipeline.publish()
                self._clock.advance(1.0)
                return published
            self._clock.advance(1.0)
        raise ValueError(f"{end} is past")

    def state(self, end: float, entity: Entity) -> ProfilingState:
        return self.until(end)[entity].profiling
