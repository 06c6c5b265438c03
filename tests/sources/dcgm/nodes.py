"""GPUs as a hostengine sees them, with every field that the source asks for."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from exporter.model import Entity
from tests.abi.dcgm.codes import LinkState
from tests.abi.dcgm.offers import A10_GROUPS, A100_GROUPS, MetricGroup, Module, NoProfiling
from tests.abi.dcgm.scenario import ComputeInstance, Gpu, GpuInstance, Links, Scenario
from tests.abi.dcgm.values import Counter, Events, Value

CONTEXT: Mapping[int, Value] = {
    52: 0.0,
    55: 4.0,
    100: 1755.0,
    101: 2619.0,
    112: 0x4 | 0x20,
    140: 61.0,
    150: 55.0,
    155: 612.5,
    156: Counter(612_500.0, start=5e9),
    160: 700.0,
    202: 3.0,
    230: Events(()),
    235: 5.0,
    236: 16.0,
    237: 5.0,
    238: 16.0,
    250: 81559.0,
    251: 1000.0,
    252: 80000.0,
    253: 559.0,
    312: 7.0,
    313: 0.0,
    393: 0.0,
    394: 1.0,
    395: 0.0,
}
CLAIM: Mapping[int, Value] = {203: 100.0, 204: 40.0}
ENGINES: Mapping[int, Value] = {
    1001: 0.995,
    1002: 0.98,
    1003: 0.125,
    1004: 0.82,
    1005: 0.31,
    1006: 0.0,
    1007: 0.015,
    1008: 0.0,
    1013: 0.0,
    1014: 0.82,
    1015: 0.0,
    1016: 0.06,
}
LINKS: Mapping[int, Value] = {1009: 3e9, 1010: 5e9, 1011: 40e9, 1012: 41e9}
NATIVE: Mapping[int, Value] = {1091: Counter(3e9, start=1e15), 1092: Counter(5e9, start=2e15)}


def uuid(number: int) -> str:
    return f"GPU-0000000{number}-0e57-4c0d-9a5e-00000000000{number}"


def board(number: int = 0) -> Entity:
    return Entity(uuid(number))


def gpu(number: int = 0, **others: Any) -> Gpu:
    """An H100 at work."""
    fields = {**CONTEXT, 52: float(number), 54: uuid(number), **CLAIM, **ENGINES, **LINKS, **NATIVE}
    made = Gpu(
        number,
        uuid(number),
        "NVIDIA H100 80GB HBM3",
        f"00000000:{0x53 + number:02X}:00.0",
        fields,
        links=(Links((LinkState.UP,) * 17 + (LinkState.DOWN,)),),
    )
    return dataclasses.replace(made, **others)


def with_fields(made: Gpu, fields: Mapping[int, Value]) -> Gpu:
    return dataclasses.replace(made, fields={**made.fields, **fields})


def _of_groups(number: int, name: str, profiling: Module) -> Gpu:
    have = {field for group in profiling.groups for field in group.fields}
    fields = {field: value for field, value in gpu(number).fields.items() if field < 1001 or field in have}
    return gpu(number, name=name, fields=fields, links=(), profiling=profiling)


MULTIPLEXED = Module(A100_GROUPS, combination=None)


def a100(number: int = 0, profiling: Module = MULTIPLEXED) -> Gpu:
    """Multiplexed, as a hostengine does by itself where it can."""
    return _of_groups(number, "NVIDIA A100-SXM4-80GB", profiling)


def v100(number: int = 0) -> Gpu:
    groups = (
        MetricGroup(0, 1, (1002, 1003, 1004)),
        MetricGroup(0, 2, (1006, 1007, 1008)),
        MetricGroup(1, 0, (1005,)),
        MetricGroup(2, 0, (1009, 1010)),
        MetricGroup(3, 0, (1001,)),
        MetricGroup(4, 0, (1011, 1012)),
    )
    return _of_groups(number, "Tesla V100-SXM2-16GB", Module(groups, combination=None))


def t4(number: int = 0) -> Gpu:
    """No FP64 and no NVLink (field case 27)."""
    groups = (MetricGroup(0, 1, (1002, 1003, 1004, 1007)), MetricGroup(0, 3, (1008,)), *A10_GROUPS[2:5])
    return _of_groups(number, "Tesla T4", Module(groups, combination=None))


NONE = NoProfiling()


def geforce(number: int = 0, profiling: NoProfiling | Module = NONE) -> Gpu:
    fields = {field: value for field, value in gpu(number).fields.items() if field < 1001}
    return gpu(number, name="NVIDIA GeForce RTX 4090", fields=fields, links=(), profiling=profiling)


def mig_gpu(number: int = 0, **others: Any) -> Gpu:
    """An H100 cut into 3g.40gb and 4g.40gb."""
    return gpu(number, instances=instances(number), **others)


def instances(number: int = 0) -> tuple[GpuInstance, ...]:
    return tuple(
        GpuInstance(
            10 * number + key,
            nvml_id,
            {**ENGINES, 1002: sm, 50: profile, 54: f"MIG-{number}-{nvml_id}", 250: 40448.0, 251: 40000.0, 252: 448.0},
            (ComputeInstance(10 * number + key, 0),),
        )
        for key, nvml_id, sm, profile in ((0, 1, 0.25, "4g.40gb"), (1, 2, 0.75, "3g.40gb"))
    )


def node(*gpus: Gpu, **others: Any) -> Scenario:
    return dataclasses.replace(Scenario(gpus), **others)
