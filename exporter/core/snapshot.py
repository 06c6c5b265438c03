"""What a scrape renders from: immutable, complete, published as one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from exporter.attribution.view import AttributionView
from exporter.core.derive import Form, Honest
from exporter.core.fabric import FabricView
from exporter.core.ledger import EntityTotals
from exporter.hardware.stage import HardwareView
from exporter.host.account import DeviceUse
from exporter.host.view import HostView
from exporter.model import Absence, Device, Entity, Problem, ProcessUse
from exporter.state.stage import StateView
from exporter.trust import ProfilingState


@dataclass(frozen=True, slots=True)
class EntityView:
    """One GPU or GPU instance."""

    device: Device
    source: str
    details: Mapping[str, str]  # labels for source_info
    present: bool
    form: Form
    claim: str | None  # the field that the parts take as the claim
    parts: tuple[str, ...]  # those that its inputs can distinguish
    means: Mapping[str, float]  # last closed window; empty when there is no current one
    instants: Mapping[str, float]
    honest: Honest | None  # over the last closed window
    totals: EntityTotals  # a copy
    absences: Mapping[str, Absence]  # expected fields without a value, and why
    profiling: ProfilingState
    last_sample: float | None  # Unix seconds
    fields: frozenset[str]
    rejected: Mapping[tuple[str, str], int]
    suspects: frozenset[str] = frozenset()  # fields whose zeros are hard to believe, and no more than that
    hardware: HardwareView | None = None  # attached by later stages
    state: StateView | None = None


@dataclass(frozen=True, slots=True)
class SourceView:
    """One source's health."""

    name: str
    up: bool
    reads: int
    failures: int
    seconds: float  # spent in the last read
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The node at one moment."""

    number: int
    timestamp: float  # Unix seconds
    time: float = 0.0  # on the clock's monotonic line
    entities: tuple[EntityView, ...] = ()
    sources: tuple[SourceView, ...] = ()
    rejected: Mapping[tuple[str, str], int] = field(default_factory=dict)  # of no entity: lines of a text
    problems: tuple[Problem, ...] = ()
    expected_gpus: int = 0
    present_gpus: int = 0
    fabric: FabricView = field(default_factory=FabricView)
    processes: tuple[ProcessUse, ...] | None = None  # None: no source knows of processes
    attribution: AttributionView | None = None  # attached by later stages; None: no attribution is configured
    host: HostView | None = None
    host_use: Mapping[Entity, DeviceUse] = field(default_factory=dict)
