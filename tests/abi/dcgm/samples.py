"""GPUs for the player's own tests."""

import dataclasses
from typing import Any

from .offers import A100_GROUPS, Module
from .scenario import ComputeInstance, Gpu, GpuInstance, Scenario
from .values import Counter, Events, steps


def h100(number: int = 0, **others: Any) -> Gpu:
    """Busy from 10 s on."""
    gpu = Gpu(
        id=number,
        uuid=f"GPU-00000000-0000-0000-0000-00000000000{number}",
        name="NVIDIA H100 80GB HBM3",
        pci_bus_id=f"00000000:0{number + 1}:00.0",
        fields={
            54: f"GPU-00000000-0000-0000-0000-00000000000{number}",
            155: steps((0.0, 100.0), (10.0, 700.0)),
            156: Counter(steps((0.0, 100_000.0), (10.0, 700_000.0)), start=5e9),
            203: steps((0.0, 0.0), (10.0, 100.0)),
            230: Events(((12.5, 31.0),)),
            1002: steps((0.0, 0.0), (10.0, 0.8)),
            1009: steps((0.0, 0.0), (10.0, 2.0**31)),
            1084: Counter(1.755e9),
        },
        memory_mib=(81559, 1000, 80559),
        power_watts=(700, 700, 200, 700),
    )
    return dataclasses.replace(gpu, **others)


def a100(number: int = 0, **others: Any) -> Gpu:
    fields = {203: 100.0, 1001: 0.9, 1002: 0.5, 1003: 0.25, 1004: 0.3, 1005: 0.4, 1006: 0.0, 1007: 0.1, 1008: 0.0}
    gpu = h100(number, name="NVIDIA A100-SXM4-80GB", fields=fields, profiling=Module(A100_GROUPS))
    return dataclasses.replace(gpu, **others)


def mig_instances() -> tuple[GpuInstance, ...]:
    return (
        GpuInstance(0, 1, {1002: 0.25}, (ComputeInstance(0, 0, {1002: 0.25}, profile=30, slices=3),), 14, 3),
        GpuInstance(1, 2, {1002: 0.75}, (ComputeInstance(1, 0, {1002: 0.75}, profile=30, slices=4),), 5, 4),
    )


def one(gpu: Gpu, **others: Any) -> Scenario:
    return dataclasses.replace(Scenario((gpu,)), **others)
