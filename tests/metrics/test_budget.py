"""Series a GPU: somebody pays for each of 10,000 GPUs (docs/architecture.md, Budgets)."""

from __future__ import annotations

from collections import Counter

import pytest

from exporter.assembly import Assembly
from exporter.attribution.accounting import Accounting
from exporter.attribution.background import AttributionBackground
from exporter.attribution.holdings import Allocations, Holding, Sharing, Workload
from exporter.attribution.stage import AttributionStage
from exporter.clock import VirtualClock
from exporter.core.pipeline import Pipeline
from exporter.core.sampler import Sampler
from exporter.core.snapshot import Snapshot
from exporter.core.workers import InlineWorker
from exporter.hardware.peaks import load
from exporter.hardware.stage import HardwareStage
from exporter.metrics.catalogue import GROUPS, Selection, samples
from exporter.metrics.family import Profile
from exporter.model import Device
from exporter.sources.simulated.source import simulated_source
from exporter.state.stage import StateStage
from exporter.state.thresholds import Thresholds


class _Everybody:
    """One pod a device."""

    name = "test"

    def read(self, devices: list[Device]) -> Allocations:
        return Allocations(
            "test", [Holding(d.entity, Workload("ml", f"pod-{d.index}", "main"), Sharing.EXCLUSIVE) for d in devices]
        )

    def close(self) -> None:
        """Nothing is held."""


@pytest.fixture(scope="module")
def snapshot() -> Snapshot:
    """A node on which everything is known, after three minutes."""
    clock, seen = VirtualClock(), list[Snapshot]()
    holders = AttributionBackground(_Everybody(), 10.0, clock.monotonic, clock.timestamp)  # type: ignore[arg-type]
    stage = AttributionStage([holders], Accounting())
    assembly = Assembly(seen.append, HardwareStage(load()), StateStage(Thresholds()), stage)
    source = simulated_source((), 12, loop=True)
    sampler = Sampler([InlineWorker(source)], Pipeline(clock, 1.0), clock, assembly, interval=1.0)
    for _ in range(180):
        sampler.tick()
        holders.read()
        clock.advance(1.0)
    return seen[-1]


@pytest.mark.parametrize(("profile", "most"), [(Profile.MINIMAL, 30), (Profile.DEFAULT, 100)])
def test_series_of_a_gpu(snapshot: Snapshot, profile: Profile, most: int) -> None:
    counts: Counter[str] = Counter()
    names: dict[str, Counter[str]] = {}
    for family, listed in samples(snapshot, GROUPS, Selection(profile)).items():
        for sample in listed:
            for view in snapshot.entities:
                if f'uuid="{view.device.entity.uuid}"' in sample.labels and "gpu_instance" not in sample.labels:
                    counts[view.device.index] += 1
                    names.setdefault(view.device.index, Counter())[family.series_name] += 1
                    break
    worst, count = counts.most_common(1)[0]
    assert count <= most, names[worst]
