"""DCGM's field ids and values in this program's fields and units (dcgm_fields.h, DCGM 4.6; ids are the same in all)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from exporter.fields import FIELDS, FP64_BLANK, INT32_BLANK, INT64_BLANK, Kind
from exporter.model import Absence
from exporter.trust import blank_reason

NATIVE_BYTES: Mapping[int, str] = {1091: "pcie_transmit", 1092: "pcie_receive"}
"""Totals of bytes, of GPUs with GPM from DCGM 4.6 on (DCGM_FI_PROF_PCIE_[TR]X_BYTES_TOTAL)."""

NVLINK_THROUGHPUT = 449
"""The driver's count of bytes over NVLink (DCGM_FI_DEV_NVLINK_THROUGHPUT_TOTAL), to contradict zeros only."""

_MEBI = float(1 << 20)
_SCALE: Mapping[int, float] = {
    203: 0.01,  # percent, despite the name RATIO it has since 4.6
    204: 0.01,
    156: 1e-3,  # mJ
    100: 1e6,  # MHz
    101: 1e6,
    250: _MEBI,  # "MB" in the header, MiB in the source
    251: _MEBI,
    252: _MEBI,
    253: _MEBI,
}
_BLANK_KINDS = 16  # blanks are the last 16 numbers below the largest of their type


class Spec(NamedTuple):
    """One DCGM field; ``scale`` converts its values to the unit of ``field``."""

    id: int
    field: str
    kind: Kind
    scale: float


SPECS: Mapping[int, Spec] = {
    spec.dcgm: Spec(spec.dcgm, name, spec.kind, _SCALE.get(spec.dcgm, 1.0))
    for name, spec in FIELDS.items()
    if spec.dcgm is not None
}
IDS: Mapping[str, int] = {spec.field: spec.id for spec in SPECS.values()}


class FieldSample(NamedTuple):
    """One sample as DCGM returns it: ``value`` in DCGM's unit, None for texts; ``time`` in microseconds since 1970."""

    kind: int  # of the entity
    entity: int
    field: int
    status: int
    time: int
    value: int | float | None
    first: bool = False  # samples before it may have been missed: what it is the mean of is not known


def blank_of(field: int, value: int | float | None) -> Absence | None:
    """The reason if the value is a blank; None for a value. Call it before any scaling (field cases 1 to 4)."""
    if value is None:
        return Absence.NOT_A_NUMBER
    if isinstance(value, float):
        return blank_reason(value - FP64_BLANK) if value >= FP64_BLANK else None
    if value >= INT64_BLANK:
        return blank_reason(value - INT64_BLANK)
    spec = SPECS.get(field)
    narrow = spec is not None and spec.kind not in (Kind.COUNTER, Kind.RATE)  # totals and rates pass through here
    return blank_reason(value - INT32_BLANK) if narrow and 0 <= value - INT32_BLANK < _BLANK_KINDS else None
