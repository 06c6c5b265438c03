"""Snapshots of full nodes, for benchmarks."""

from __future__ import annotations

import random
from collections.abc import Iterator

from exporter.clock import VirtualClock
from exporter.core.pipeline import Pipeline
from exporter.core.snapshot import Snapshot, SourceView
from exporter.fields import CLAIM, CLOCK_EVENTS, FIELDS, LINKS, PROFILING, TENSOR_PIPES, Kind
from exporter.model import Batch, Device, Entity, Reading

_CONTEXT = tuple(
    name for name, spec in FIELDS.items() if spec.kind in (Kind.GAUGE, Kind.COUNTER) and name != "retired_pages"
)
_LEVEL = {"temperature": 61.0, "memory_temperature": 80.0, "pcie_link_generation": 5.0, "pcie_link_generation_max": 5.0}


def gpus(count: int) -> list[Device]:
    """Whole GPUs with every field."""
    fields = frozenset({*CLAIM, *PROFILING, *TENSOR_PIPES, *LINKS, *_CONTEXT, "clock_event"})
    return [
        Device(
            Entity(f"GPU-{n:08d}-0000-0000-0000-000000000000"), str(n), fields, "NVIDIA H100 80GB HBM3", minor=str(n)
        )
        for n in range(count)
    ]


def instances(boards: int, each: int) -> list[Device]:
    """Boards cut into GPU instances."""
    measured = frozenset({*PROFILING, "memory_used", "memory_total", "memory_free"})
    devices = []
    for board in gpus(boards):
        context = frozenset({*_CONTEXT, "clock_event"})
        devices.append(Device(board.entity, board.index, context, board.model, mig_enabled=True))
        for instance in range(each):
            entity = Entity(board.entity.uuid, instance + 1)
            devices.append(Device(entity, board.index, measured, board.model, mig_profile="1g.10gb"))
    return devices


def batches(devices: list[Device], interval: float, seed: int = 1) -> Iterator[Batch]:
    """One batch an interval, without end; values vary."""
    random_ = random.Random(seed)
    end = 0.0
    while True:
        start, end = end, end + interval
        readings = [r for device in devices for r in _readings(device, start, end, random_)]
        yield Batch("bench", end, devices, readings)


def _readings(device: Device, start: float, end: float, random_: random.Random) -> Iterator[Reading]:
    for field in sorted(device.fields):
        kind = FIELDS[field].kind
        if kind is Kind.RATIO:
            yield Reading(device.entity, field, end, random_.random(), start)
        elif kind is Kind.RATE:
            yield Reading(device.entity, field, end, random_.random() * 1e10, start)
        elif kind is Kind.COUNTER:
            yield Reading(device.entity, field, end, end * 100)
        elif kind is Kind.ACTIVE:
            for name in CLOCK_EVENTS.values():
                yield Reading(device.entity, field, end, float(name == "idle"), None, None, name)
        else:
            yield Reading(device.entity, field, end, _LEVEL.get(field, 1.0 + random_.random()))


def snapshots(devices: list[Device], count: int, interval: float = 1.0) -> list[Snapshot]:
    """That many Snapshots, one an interval."""
    clock = VirtualClock()
    pipeline = Pipeline(clock, interval)
    feed, made = batches(devices, interval), []
    for _ in range(count):
        clock.advance(interval)
        pipeline.absorb(next(feed))
        made.append(pipeline.publish([SourceView("bench", True, 1, 0, 0.001)]))
    return made
