"""What an attribution source finds: who holds which entity."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
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
