"""What an attribution source finds: who holds which entity."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from exporter.model import Device, Entity, SourceError


class Sharing(enum.Enum):
    """How a holder has its GPU; values of the ``sharing`` label."""

    EXCLUSIVE = "exclusive"
    TIME_SLICED = "time_sliced"
    MPS = "mps"
    MIG = "mig"
    DRA_SHARED = "dra_shared"


class Workload(NamedTuple):
    """Who: a container of a pod, or a job. Empty texts are left out of labels."""

    namespace: str = ""
    pod: str = ""
    container: str = ""
    job_id: str = ""
    user: str = ""
    account: str = ""


@dataclass(frozen=True, slots=True)
class Holding:
    """One workload holds one entity."""

    entity: Entity
    workload: Workload
    sharing: Sharing
    labels: Mapping[str, str] = field(default_factory=dict)  # optional: pod labels, UID, owner
    uid: int | None = None  # number of the job's user; None: not known


@dataclass(frozen=True, slots=True)
class Claim:
    """One workload on one entity, as one file or process says."""

    entity: Entity
    workload: Workload
    mps: bool = False  # known to share by CUDA's Multi-Process Service
    labels: Mapping[str, str] = field(default_factory=dict)
    uid: int | None = None  # number of the job's user; None: not known


@dataclass(frozen=True, slots=True)
class Allocations:
    """All holders that one attribution source knows, at once."""

    source: str
    holdings: Sequence[Holding]
    unresolved: Mapping[str, int] = field(default_factory=dict)  # kind of what could not be matched -> how many now
    allocatable: frozenset[Entity] | None = None  # what a scheduler may hand out at all; None: not known
    all_told: bool = True  # False: a GPU is held, and which one is not known


class AttributionError(SourceError):
    """A read of an attribution source that failed as a whole."""


class Attributor(Protocol):
    """One way to learn who holds GPUs. Read in the background, never by a scrape."""

    @property
    def name(self) -> str:
        """Short name; a label value."""

    def read(self, devices: Sequence[Device]) -> Allocations:
        """Who holds which of these devices now; may block up to its own deadline. Raises AttributionError."""

    def close(self) -> None:
        """Free what it holds."""


def holdings(claims: Iterable[Claim]) -> tuple[Holding, ...]:
    """Every pair of entity and workload once, with how the entity is shared; in a stable order.

    Several holders of one GPU are time-sliced, unless one of them is known to use MPS.
    """
    holders: dict[Entity, dict[Workload, Claim]] = {}
    for claim in claims:
        holders.setdefault(claim.entity, {}).setdefault(claim.workload, claim)
    return tuple(
        Holding(entity, workload, _sharing(entity, each.values()), claim.labels, claim.uid)
        for entity, each in sorted(holders.items(), key=lambda item: str(item[0]))
        for workload, claim in sorted(each.items())
    )


def _sharing(entity: Entity, claims: Iterable[Claim]) -> Sharing:
    listed = list(claims)
    if entity.gpu_instance is not None:
        return Sharing.MIG
    if any(claim.mps for claim in listed):
        return Sharing.MPS
    return Sharing.TIME_SLICED if len(listed) > 1 else Sharing.EXCLUSIVE


@dataclass(slots=True)
class DriverProcesses:
    """(entity, process id) of the processes that the driver named last; the sampler's thread replaces them."""

    latest: Sequence[tuple[Entity, int]] = ()

    def __call__(self) -> Sequence[tuple[Entity, int]]:
        return self.latest
