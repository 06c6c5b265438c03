"""Snapshots with holders and processes, made by the core itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from exporter.assembly import Assembly
from exporter.attribution.accounting import Accounting
from exporter.attribution.background import AttributionBackground
from exporter.attribution.holdings import Allocations, Holding, Workload
from exporter.attribution.stage import AttributionStage, Listing
from exporter.clock import VirtualClock
from exporter.core.pipeline import Pipeline
from exporter.core.snapshot import Snapshot
from exporter.hardware.peaks import load
from exporter.hardware.stage import HardwareStage
from exporter.metrics.family import Group
from exporter.model import Batch, Device, Entity, ProcessUse
from exporter.state.stage import StateStage
from exporter.state.thresholds import Thresholds
from tests.core.building import FULL, readings

H100 = "NVIDIA H100 80GB HBM3"
WHOLE, BOARD = Entity("GPU-1"), Entity("GPU-2")
SLICE = Entity("GPU-2", 7)
DEVICES = (
    Device(WHOLE, "0", FULL, model=H100),
    Device(BOARD, "1", FULL - {"busy"}, model=H100, mig_enabled=True),
    Device(SLICE, "1", FULL - {"busy", "power"}, model=H100, mig_profile="3g.40gb"),
)


class Told:
    """An attribution source that says what it is told to."""

    name = "told"

    def __init__(self, holdings: Sequence[Holding], allocatable: frozenset[Entity] | None = None) -> None:
        self.allocations = Allocations(self.name, holdings, {}, allocatable)

    def read(self, devices: Sequence[Device]) -> Allocations:
        return self.allocations

    def close(self) -> None:
        """Nothing is held."""


class Whose:
    """A node of one GPU and a board with one instance; time goes by a window at a time."""

    def __init__(
        self,
        told: Told,
        commands: Mapping[int, str] | None = None,
        most: int = 64,
        devices: Sequence[Device] = DEVICES,
    ) -> None:
        """``commands``: names of processes, which are then shown singly."""
        self._clock, self._seen = VirtualClock(), list[Snapshot]()
        self._pipeline = Pipeline(self._clock, 1.0)
        self._source = AttributionBackground(told, 10.0, self._clock.monotonic, self._clock.timestamp)
        listing = None if commands is None else Listing(lambda pid: (commands or {}).get(pid, ""), most)
        stage = AttributionStage([self._source], Accounting(), _by_pid, listing=listing)
        self._assembly = Assembly(self._seen.append, HardwareStage(load()), StateStage(Thresholds()), stage)
        self.devices = devices

    def window(self, processes: Sequence[ProcessUse] | None = ()) -> Snapshot:
        """One second in which every device is half in use."""
        start = self._clock.monotonic()
        self._clock.advance(1.0)
        end = self._clock.monotonic()
        made = [
            reading
            for device in self.devices
            for reading in readings(start, end, dict.fromkeys(device.fields, 0.5), device.entity)
        ]
        self._pipeline.absorb(Batch("test", end, self.devices, made, processes=processes))
        self._assembly(self._pipeline.publish())
        self._source.devices([device for device in self.devices if not device.mig_enabled])
        self._source.read()
        return self._seen[-1]


def _by_pid(pid: int, holders: Sequence[Workload]) -> Workload | None:
    """Processes 10 to 19 are the first holder's, and so on."""
    place = pid // 10 - 1
    return holders[place] if 0 <= place < len(holders) else None


def series(snapshot: Snapshot, group: Group) -> dict[str, float]:
    """Series -> value; fails where one is there twice."""
    listed = [(f"{s.family.series_name}{s.suffix}{{{s.labels}}}", s.value) for s in group.collect(snapshot)]
    found = dict(listed)
    assert len(found) == len(listed)
    return found
