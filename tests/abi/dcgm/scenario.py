"""What there is in a scenario; scenario_file.py writes it for the C library."""

from dataclasses import dataclass, field

from ..player.faults import CallFault
from .codes import Code, EntityKind, LinkState
from .happenings import Lock, ValueFault
from .offers import GPM, Profiling
from .values import Fields, Window


@dataclass(frozen=True)
class Links:
    """States of NVLink links from a time on."""

    states: tuple[LinkState, ...]
    start: float = 0.0


@dataclass(frozen=True)
class ComputeInstance:
    id: int
    """The entity id."""
    nvml_id: int
    fields: Fields = field(default_factory=dict)
    profile: int = 0
    slices: int = 1
    present: tuple[Window, ...] = ()
    """Empty: as long as what it is a part of."""


@dataclass(frozen=True)
class GpuInstance:
    id: int
    """The entity id."""
    nvml_id: int
    fields: Fields = field(default_factory=dict)
    computes: tuple[ComputeInstance, ...] = ()
    profile: int = 0
    slices: int = 1
    present: tuple[Window, ...] = ()


@dataclass(frozen=True)
class Gpu:
    id: int
    uuid: str
    name: str
    pci_bus_id: str
    fields: Fields = field(default_factory=dict)
    profiling: Profiling = GPM
    instances: tuple[GpuInstance, ...] = ()
    mig: tuple[Window, ...] | None = None
    """When MIG mode is on; None: always, if there are instances."""
    links: tuple[Links, ...] = ()
    present: tuple[Window, ...] = ()
    """Empty: always. A GPU that is not there is detached; a lost one is a fault."""
    supported: bool = True
    brand: str = "Tesla"
    serial: str = "<<<NULL>>>"
    vbios: str = "<<<NULL>>>"
    inforom: str = "<<<NULL>>>"
    pci_device_id: int = 0x233010DE
    pci_subsystem_id: int = 0
    nvml_index: int | None = None
    """None: the id."""
    memory_mib: tuple[int, int, int] | None = None
    """Total, used, free."""
    bar1_mib: int | None = None
    power_watts: tuple[int, int, int, int] | None = None
    """The limit, its default, the least, the most."""
    slowdown_celsius: int | None = None
    shutdown_celsius: int | None = None


@dataclass(frozen=True)
class Switch:
    id: int
    fields: Fields = field(default_factory=dict)
    links: tuple[Links, ...] = ()
    present: tuple[Window, ...] = ()


@dataclass(frozen=True)
class Link:
    """An NVLink link as an entity."""

    owner: EntityKind
    owner_id: int
    index: int
    fields: Fields = field(default_factory=dict)

    @property
    def id(self) -> int:
        return self.owner | self.index << 8 | self.owner_id << 24


@dataclass(frozen=True)
class Cpu:
    id: int
    fields: Fields = field(default_factory=dict)


@dataclass(frozen=True)
class Scenario:
    gpus: tuple[Gpu, ...] = ()
    switches: tuple[Switch, ...] = ()
    links: tuple[Link, ...] = ()
    cpus: tuple[Cpu, ...] = ()
    version: tuple[int, int, int] = (4, 6, 0)
    """Of the hostengine and the library: decides which fields and which versions of structs there are."""
    driver_version: str = "580.105.08"
    address: str | None = None
    """The only one that answers, without scheme; None: every address does."""
    wall_offset: float | None = 1_767_225_600.0
    """The hostengine's clock (seconds since 1970) at scenario time 0; None: the real time."""
    nvml: bool = True
    """False: no MIG hierarchy."""
    module_loaded: bool = True
    """The profiling module."""
    first_blank: bool = True
    """The first sample of a GPM watch is blank."""
    cpu_code: Code | None = Code.MODULE_NOT_LOADED
    """What asking for CPUs gets; None: the list of them."""
    request_timeout: float = 60.0
    """How long a client waits for a stopped hostengine, of scenario time or of real time."""
    gone: tuple[Window, ...] = ()
    """The hostengine is killed, and is there again afterwards, having forgotten everything; not the embedded one."""
    stopped: tuple[Window, ...] = ()
    """It does not answer; not the embedded one."""
    paused: tuple[Window, ...] = ()
    """Another client pauses profiling at the start, and resumes it at the end."""
    locks: tuple[Lock, ...] = ()
    call_faults: tuple[CallFault, ...] = ()
    value_faults: tuple[ValueFault, ...] = ()
