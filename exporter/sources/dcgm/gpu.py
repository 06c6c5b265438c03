"""One GPU: everything that is watched of it and of its instances, and its readings."""

from __future__ import annotations

from dataclasses import dataclass, field

from exporter.fields import CLAIM, FIELDS, LINKS, PROFILING, TENSOR_PIPES
from exporter.model import Entity
from exporter.sources.dcgm.errors import CallFailed
from exporter.sources.dcgm.measurement import Measurement
from exporter.sources.dcgm.values import IDS, NATIVE_BYTES
from exporter.sources.dcgm.watches import Watch

WATCHED_FASTER = 0.9  # of the sampling interval: a read never falls between two samples, and leaves a window empty
CONTEXT_INTERVAL = 1.0  # seconds: power, clocks and memory are not read faster than that
SILENT = 5.0  # intervals without any profiling sample that look like a dead watch

_WANTED = ("sm", "sm_occupancy", "graphics_engine", "tensor", "dram", "fp32", "fp16", "fp64", "integer")
assert set(_WANTED) == set(PROFILING)
_ENGINE_IDS = tuple(IDS[name] for name in (*_WANTED, *TENSOR_PIPES) if name in IDS)
_LINK_IDS = (*(IDS[name] for name in LINKS), *NATIVE_BYTES)
_CLAIM_IDS = tuple(IDS[name] for name in CLAIM)
_MEMORY_IDS = tuple(IDS[name] for name in ("memory_total", "memory_free", "memory_used", "memory_reserved"))
_CONTEXT_IDS = tuple(
    id_ for name, id_ in IDS.items() if id_ not in (*_CLAIM_IDS, *_ENGINE_IDS, *_LINK_IDS) and name in FIELDS
)


@dataclass
class _Plain:
    """A watch that is no profiling: of these fields, unless some are refused."""

    entities: tuple[Entity, ...]
    watch: Watch
    refused: dict[int, CallFailed]
    read_at: float = float("-inf")


@dataclass
class _Measured:
    entities: tuple[Entity, ...]
    measurement: Measurement
    armed: float = field(default=float("-inf"))
