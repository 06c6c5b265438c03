"""Readings and batches for tests of the core."""

from __future__ import annotations

from collections.abc import Mapping

from exporter.fields import FIELDS, Kind
from exporter.model import Absence, Batch, Device, Entity, Reading

GPU = Entity("GPU-00000000-0000-0000-0000-000000000001")
FULL = frozenset({"busy", "graphics_engine", "sm", "sm_occupancy", "tensor", "fp32", "dram", "power", "processes"})


def device(fields: frozenset[str] = FULL, entity: Entity = GPU, *, mig_enabled: bool = False) -> Device:
    """GPU 0."""
    return Device(entity, "0", fields, model="NVIDIA H100 80GB HBM3", mig_enabled=mig_enabled)


def readings(start: float, end: float, values: Mapping[str, float | Absence], entity: Entity = GPU) -> list[Reading]:
    """One reading a field: a mean over (start, end], or an instant at ``end`` for fields that are instants."""
    made = []
    for field, value in values.items():
        interval = FIELDS[field].kind in (Kind.RATIO, Kind.RATE)
        absent = value if isinstance(value, Absence) else None
        number = None if isinstance(value, Absence) else value
        made.append(Reading(entity, field, end, number, start if interval else None, absent))
    return made


def batch(
    start: float, end: float, values: Mapping[str, float | Absence], of: Device | None = None, source: str = "test"
) -> Batch:
    """A batch of one device."""
    listed = of or device()
    return Batch(source, end, (listed,), readings(start, end, values, listed.entity))
