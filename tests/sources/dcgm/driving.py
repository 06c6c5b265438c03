"""The source against the player, in this process: the library is loaded once, and reads a scenario at each start."""

from dataclasses import dataclass, field

from exporter.model import Absence, Batch, Entity, Reading
from exporter.sources.dcgm.source import DcgmSource
from tests.abi.dcgm.playing import Playing, Report

SHIFT = 5000.0
"""The program's time line is not that of the scenario."""


@dataclass
class Driver:
    source: DcgmSource
    playing: Playing
    batches: list[Batch] = field(default_factory=list)

    def read(self, at: float) -> Batch:
        """One read at a scenario time."""
        assert self.playing.clock is not None
        self.playing.clock.set(at)
        batch = self.source.read(at + SHIFT)
        self.batches.append(batch)
        return batch

    def run(self, start: float, end: float, step: float = 1.0) -> list[Batch]:
        """Reads at start, start + step, ... up to and with the end."""
        return [self.read(start + index * step) for index in range(round((end - start) / step) + 1)]

    @property
    def report(self) -> Report:
        return self.playing.report()


def of(batch: Batch, field: str, entity: Entity | None = None) -> list[Reading]:
    return [r for r in batch.readings if r.field == field and (entity is None or r.entity == entity)]


def values(batch: Batch, entity: Entity | None = None) -> dict[str, float]:
    """The last value of each field that has one."""
    return {r.field: r.value for r in batch.readings if r.value is not None and (entity is None or r.entity == entity)}


def absences(batch: Batch, entity: Entity | None = None) -> dict[str, Absence]:
    return {
        r.field: r.absence for r in batch.readings if r.absence is not None and (entity is None or r.entity == entity)
    }


def spans(readings: list[Reading]) -> list[tuple[float, float, float]]:
    """Start, end and value of intervals that have one, in scenario time."""
    found = []
    for reading in readings:
        if reading.value is not None:
            assert reading.start is not None
            found.append((round(reading.start - SHIFT, 4), round(reading.end - SHIFT, 4), reading.value))
    return found
