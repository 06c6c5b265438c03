"""What flows through the program: entities, readings, batches. Imports nothing of the package.

All times are seconds on the clock's monotonic time line, unless a name says ``timestamp`` (Unix seconds).
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol


class Entity(NamedTuple):
    """What is measured: a GPU board, or one MIG GPU instance of it. Identity is the board's UUID, never an index."""

    uuid: str
    gpu_instance: int | None = None

    def __str__(self) -> str:
        return self.uuid if self.gpu_instance is None else f"{self.uuid}/gi{self.gpu_instance}"


class Absence(enum.Enum):
    """Why a field has no value; the values are label values."""

    NOT_SUPPORTED = "not_supported"  # this GPU or driver does not have it
    NOT_CONFIGURED = "not_configured"  # the source could, but was told not to read it
    NOT_PERMITTED = "not_permitted"
    NOT_FOUND = "not_found"
    BLANK = "blank"  # DCGM's blank without a further reason
    NOT_A_NUMBER = "not_a_number"
    OUT_OF_RANGE = "out_of_range"
    OVERLAP = "overlap"  # two values for the same time
    STALE = "stale"
    CONTRADICTED = "contradicted"  # a zero, while another counter of the same thing moves
    PAUSED = "paused"
    LOCKED = "locked"
    NO_DATA = "no_data"
    ERROR = "error"

    @property
    def definitive(self) -> bool:
        """True when waiting will not help: the number is computed without this field instead of waiting for it."""
        return self in (Absence.NOT_SUPPORTED, Absence.NOT_CONFIGURED, Absence.NOT_PERMITTED)


class Reading(NamedTuple):
    """One value of one field. ``start`` None: an instant at ``end``; else the mean over (start, end]."""

    entity: Entity
    field: str  # a key of fields.FIELDS
    end: float
    value: float | None
    start: float | None = None
    absence: Absence | None = None  # set exactly when value is None
    label: str = ""  # for fields that are families of their own: the Xid code, the clock-event reason


@dataclass(frozen=True, slots=True)
class Device:
    """Static facts of an entity, as far as its source knows them."""

    entity: Entity
    index: str  # the driver's index, for people; several drivers and tools count differently
    fields: frozenset[str] = frozenset()  # what the source expects to deliver for it
    model: str = ""
    pci_bus_id: str = ""
    driver_version: str = ""
    minor: str = ""
    mig_profile: str = ""
    mig_uuid: str = ""  # of a GPU instance: the driver's own UUID for it, MIG-...
    mig_enabled: bool = False  # a board cut into instances: the driver's claim does not exist on it


class ProcessUse(NamedTuple):
    """One process that holds a context on an entity, as the driver sees it; None: the driver does not tell."""

    entity: Entity
    pid: int
    memory_bytes: float | None = None
    sm: float | None = None  # share of the time since the last read for which it had SMs in use, 0..1


class PartKind(enum.Enum):
    """What belongs to a node's GPUs and is none; the values name labels, and begin names of fields and metrics."""

    NVSWITCH = "nvswitch"
    CPU = "cpu"  # a socket of Grace: what DCGM knows of other CPUs is nothing


class Part(NamedTuple):
    """One NVSwitch or CPU; ``number`` is its source's own, there is no UUID."""

    kind: PartKind
    number: int


class PartReading(NamedTuple):
    """One value of one field of a part. ``start`` None: an instant at ``end``; else the mean over (start, end]."""

    part: Part
    field: str  # a key of fields.PART_FIELDS
    end: float
    value: float
    start: float | None = None
    label: str = ""  # the rail, the SXid code


class LinkState(enum.Enum):
    """Of one NVLink link."""

    UP = "up"
    DOWN = "down"
    DISABLED = "disabled"


@dataclass(frozen=True, slots=True)
class Fabric:
    """One read of the fabric: links, NVSwitches, CPUs. Sources read it less often than the GPUs."""

    end: float
    lasts: float  # seconds until the next read is due
    parts: Sequence[Part] = ()
    readings: Sequence[PartReading] = ()
    links: Mapping[Entity | Part, Mapping[int, LinkState]] = field(default_factory=dict)  # by the link's number


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that is missing, for the person on call."""

    what: str  # what failed
    why: str
    remedy: str  # the command or setting that fixes it; may be empty
    entity: Entity | None = None


@dataclass(frozen=True, slots=True)
class Batch:
    """Everything one read of one source brought."""

    source: str
    end: float
    devices: Sequence[Device]
    readings: Sequence[Reading]
    problems: Sequence[Problem] = ()
    rejected: Mapping[tuple[str, str], int] = field(default_factory=dict)  # (field, reason) -> count
    details: Mapping[str, str] = field(default_factory=dict)  # labels for source_info
    processes: Sequence[ProcessUse] | None = None  # None: this source does not know of processes
    fabric: Fabric | None = None  # None: no look was due, or this source sees nothing of it
    final: bool = False  # the source has ended by itself (a recording played once)


class SourceError(Exception):
    """A read that failed as a whole. The message says what failed and why; ``remedy`` how to fix it."""

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.remedy = remedy


class Source(Protocol):
    """One way to read GPUs. Knows nothing of Prometheus."""

    @property
    def name(self) -> str:
        """Short name, unique among the running sources; a label value."""

    def read(self, now: float) -> Batch:
        """Read everything since the last call; may block. Raises SourceError when the whole read failed."""

    def close(self) -> None:
        """Free what the source holds; called once, also after failures."""


class Clock(Protocol):
    """Where time comes from, so that tests and fast replays run on a virtual one."""

    def monotonic(self) -> float:
        """Seconds that never step."""

    def timestamp(self) -> float:
        """Unix seconds of the wall clock."""
