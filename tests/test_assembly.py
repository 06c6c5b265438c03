"""What the assembly attaches must not depend on the order in which a source lists its devices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from exporter.assembly import Assembly
from exporter.clock import VirtualClock
from exporter.core.pipeline import Pipeline
from exporter.core.sampler import Sampler
from exporter.core.snapshot import Snapshot
from exporter.core.workers import InlineWorker
from exporter.hardware.peaks import load
from exporter.hardware.stage import HardwareStage
from exporter.model import Entity
from exporter.sources.simulated.source import simulated_source
from exporter.state.rules import State
from exporter.state.stage import StateStage
from exporter.state.thresholds import Thresholds

SECONDS = 120


def states(order: Callable[[Snapshot], Snapshot]) -> dict[Entity, State]:
    """Of a node with MIG instances, whose entities come in this order."""
    clock, seen = VirtualClock(), list[Snapshot]()
    assembly = Assembly(seen.append, HardwareStage(load()), StateStage(Thresholds()))
    sampler = Sampler(
        [InlineWorker(simulated_source(("mig-mixed",), 1, loop=True))],
        Pipeline(clock, 1.0),
        clock,
        lambda snapshot: assembly(order(snapshot)),
        interval=1.0,
    )
    for _ in range(SECONDS):
        sampler.tick()
        clock.advance(1.0)
    return {view.device.entity: view.state.verdict.state for view in seen[-1].entities if view.state is not None}


def as_driver(snapshot: Snapshot) -> Snapshot:
    """Instances without PCIe traffic of their own: the driver has it for the board only."""
    entities = (
        replace(view, means={field: mean for field, mean in view.means.items() if not field.startswith("pcie_")})
        if view.device.entity.gpu_instance is not None
        else replace(view, means={**view.means, "pcie_transmit": 1e9, "pcie_receive": 1e9})
        for view in snapshot.entities
    )
    return replace(snapshot, entities=tuple(entities))


def reversed_order(snapshot: Snapshot) -> Snapshot:
    listed = as_driver(snapshot)
    return replace(listed, entities=listed.entities[::-1])


def test_instances_may_come_before_their_board() -> None:
    """An instance's PCIe traffic is at most its board's: without that figure its state could not be told."""
    boards_first = states(as_driver)
    assert {State.TENSOR_BOUND, State.DRAM_BOUND} <= set(boards_first.values())
    assert states(reversed_order) == boards_first
