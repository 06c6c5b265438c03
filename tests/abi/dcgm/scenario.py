"""What the player plays, as types; scenario_file.py writes them for the C library.

Times are seconds of scenario time.
"""

import enum
import math
from collections.abc import Mapping
from dataclasses import dataclass, field

FOREVER = math.inf


class Code(enum.IntEnum):
    """DCGM's return codes."""

    BADPARAM = -1
    GENERIC_ERROR = -3
    NOT_CONFIGURED = -5
    NOT_SUPPORTED = -6
    NVML_ERROR = -8
    UNINITIALIZED = -10
    TIMEOUT = -11
    VER_MISMATCH = -12
    NO_DATA = -14
    NOT_WATCHED = -16
    NO_PERMISSION = -17
    GPU_IS_LOST = -18
    CONNECTION_NOT_VALID = -21
    GROUP_INCOMPATIBLE = -23
    MAX_LIMIT = -24
    DUPLICATE_KEY = -26
    REQUIRES_ROOT = -29
    INSUFFICIENT_SIZE = -31
    MODULE_NOT_LOADED = -33
    IN_USE = -34
    PROFILING_NOT_SUPPORTED = -36
    PROFILING_LIBRARY_ERROR = -37
    PROFILING_MULTI_PASS = -38
    INSUFFICIENT_DRIVER_VERSION = -44
    PAUSED = -54
    NVML_NOT_LOADED = -56
    GPUS_DETACHED = -67


class EntityKind(enum.IntEnum):
    GPU = 1
    SWITCH = 3
    GPU_INSTANCE = 4
    COMPUTE_INSTANCE = 5
    LINK = 6
    CPU = 7
    CPU_CORE = 8


class LinkState(enum.IntEnum):
    NOT_SUPPORTED = 0
    DISABLED = 1
    DOWN = 2
    UP = 3


@dataclass(frozen=True)
class Window:
    """From a time on, until another (not inside)."""

    start: float = 0.0
    end: float = FOREVER


# ---- values over time ----


class Blank(enum.IntEnum):
    """A value that is none; its status is 0 all the same."""

    UNSET = 0
    NOT_FOUND = 1
    NOT_SUPPORTED = 2
    NOT_PERMITTED = 3


@dataclass(frozen=True)
class Steps:
    """Each value holds from its time on; the first one also before it.

    A sample of a profiling field (but of the native counters) is the mean over its interval, else that of its moment.
    """

    points: tuple[tuple[float, float | Blank], ...]


def steps(*points: tuple[float, float | Blank]) -> Steps:
    return Steps(points)


@dataclass(frozen=True)
class Counter:
    """start + the integral of a rate per second; from zero again at each reset."""

    rate: float | Steps
    start: float = 0.0
    resets: tuple[float, ...] = ()


@dataclass(frozen=True)
class Events:
    """Samples only at these times, with these values."""

    points: tuple[tuple[float, float], ...]


Value = float | Blank | str | Steps | Counter | Events
Fields = Mapping[int, Value]
"""By field id. What is not named is blank (not supported; profiling fields: unset)."""

# ---- profiling ----


@dataclass(frozen=True)
class MetricGroup:
    major: int
    minor: int
    fields: tuple[int, ...]
    withheld: bool = False
    """Listed, but a watch does not get its fields; of the module only."""


@dataclass(frozen=True)
class Gpm:
    """Hopper and newer: everything at once, and the first sample of a watch is blank."""

    groups: tuple[MetricGroup, ...] | None = None
    """None: what the hostengine's version lists."""


@dataclass(frozen=True)
class Module:
    """Volta to Ada: by the profiling module; groups of one major and different minors share hardware."""

    groups: tuple[MetricGroup, ...]
    combination: Code | None = Code.PROFILING_MULTI_PASS
    """What a watch gets that needs two such groups at once; None: they are multiplexed."""
    field: Code = Code.PROFILING_NOT_SUPPORTED
    """What a watch gets that names a field of no group."""
    refusal: Code | None = None
    """What everything about profiling gets: not permitted, say."""


@dataclass(frozen=True)
class NoProfiling:
    refusal: Code | None = None
    """None: as a hostengine says it, by whether the module is loaded."""


Profiling = Gpm | Module | NoProfiling

A10_GROUPS = (
    MetricGroup(0, 1, (1002, 1003, 1004, 1007)),
    MetricGroup(0, 3, (1008,)),
    MetricGroup(1, 0, (1005,)),
    MetricGroup(2, 0, (1009, 1010)),
    MetricGroup(3, 0, (1001,)),
    MetricGroup(4, 0, (1011, 1012)),
)
A100_GROUPS = (
    MetricGroup(0, 1, (1002, 1003, 1004, 1007)),
    MetricGroup(0, 2, (1006,)),
    MetricGroup(0, 3, (1008,)),
    *A10_GROUPS[2:],
)


def gpm_groups(version: tuple[int, int, int]) -> tuple[MetricGroup, ...]:
    """A list of what could be asked for, the same for every GPU: no promise that a field has data."""
    native = version >= (4, 6, 0)
    links = (*range(1040, 1084), *((1532, 1533) if native else ()))
    counters = (MetricGroup(2, 0, tuple(range(1084, 1097))),) if native else ()
    return (MetricGroup(0, 0, tuple(range(1001, 1035))), MetricGroup(1, 0, links), *counters)


# ---- what there is ----


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
    profiling: Profiling = Gpm()
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


# ---- what goes wrong ----


class CallFaultKind(enum.IntEnum):
    ERROR = 0
    HANG = 1
    DELAY = 2


@dataclass(frozen=True)
class CallFault:
    """Happens in calls of functions whose name matches a glob."""

    function: str
    kind: CallFaultKind
    argument: float = 0.0
    gpu: int | None = None
    """Only in calls about this GPU; those are the ones about attributes and metric groups."""
    window: Window = Window()
    limit: int = 0
    """How many calls at most; 0: all."""


def failing(
    function: str, code: Code, start: float = 0.0, end: float = FOREVER, *, gpu: int | None = None, limit: int = 0
) -> CallFault:
    """Calls return the code."""
    return CallFault(function, CallFaultKind.ERROR, code, gpu, Window(start, end), limit)


def hanging(
    function: str, start: float = 0.0, end: float = FOREVER, *, gpu: int | None = None, limit: int = 0
) -> CallFault:
    """Calls do not return before the end, then they go on as if nothing had been."""
    return CallFault(function, CallFaultKind.HANG, 0.0, gpu, Window(start, end), limit)


def delaying(
    function: str, seconds: float, start: float = 0.0, end: float = FOREVER, *, gpu: int | None = None, limit: int = 0
) -> CallFault:
    """Calls take longer, in real time."""
    return CallFault(function, CallFaultKind.DELAY, seconds, gpu, Window(start, end), limit)


class ValueFaultKind(enum.IntEnum):
    BLANK = 0
    STUCK = 1
    FROZEN = 2
    SILENT = 3
    STATUS = 4
    LOST = 5


class Cure(enum.IntFlag):
    """What ends a fault before its window does."""

    NONE = 0
    WATCH = 1
    """A new watch of the field, where nobody watched it any more."""
    RESUME = 2
    """Resuming profiling."""


PROFILING = (1001, 1096)
EVERY_FIELD = (0, 65535)


@dataclass(frozen=True)
class ValueFault:
    """Happens to samples taken within the window; of several the first one in the scenario counts."""

    kind: ValueFaultKind
    argument: float = 0.0
    fields: tuple[int, int] = EVERY_FIELD
    """First and last."""
    gpu: int | None = None
    """None: any; else the GPU and its instances."""
    entity: tuple[EntityKind, int] | None = None
    window: Window = Window()
    cure: Cure = Cure.NONE


def _of(fields: int | tuple[int, int]) -> tuple[int, int]:
    return (fields, fields) if isinstance(fields, int) else fields


def blanking(
    fields: int | tuple[int, int],
    start: float = 0.0,
    end: float = FOREVER,
    *,
    kind: Blank = Blank.UNSET,
    gpu: int | None = None,
    entity: tuple[EntityKind, int] | None = None,
    cure: Cure = Cure.NONE,
) -> ValueFault:
    """Samples are blank; of a text, too."""
    return ValueFault(ValueFaultKind.BLANK, kind, _of(fields), gpu, entity, Window(start, end), cure)


def sticking(
    fields: int | tuple[int, int],
    value: float,
    start: float = 0.0,
    end: float = FOREVER,
    *,
    gpu: int | None = None,
    entity: tuple[EntityKind, int] | None = None,
    cure: Cure = Cure.NONE,
) -> ValueFault:
    """Samples go on, all of one value: 0.0 for profiling stuck at zero."""
    return ValueFault(ValueFaultKind.STUCK, value, _of(fields), gpu, entity, Window(start, end), cure)


def freezing(
    fields: int | tuple[int, int],
    start: float = 0.0,
    end: float = FOREVER,
    *,
    gpu: int | None = None,
    entity: tuple[EntityKind, int] | None = None,
    cure: Cure = Cure.NONE,
) -> ValueFault:
    """Samples go on, each with the value that the fault began with."""
    return ValueFault(ValueFaultKind.FROZEN, 0.0, _of(fields), gpu, entity, Window(start, end), cure)


def silencing(
    fields: int | tuple[int, int],
    start: float = 0.0,
    end: float = FOREVER,
    *,
    gpu: int | None = None,
    entity: tuple[EntityKind, int] | None = None,
    cure: Cure = Cure.NONE,
) -> ValueFault:
    """No new samples: rows without data."""
    return ValueFault(ValueFaultKind.SILENT, 0.0, _of(fields), gpu, entity, Window(start, end), cure)


def failing_rows(
    fields: int | tuple[int, int],
    code: Code,
    start: float = 0.0,
    end: float = FOREVER,
    *,
    gpu: int | None = None,
    entity: tuple[EntityKind, int] | None = None,
    cure: Cure = Cure.NONE,
) -> ValueFault:
    """No new samples: rows with a code as their status."""
    return ValueFault(ValueFaultKind.STATUS, code, _of(fields), gpu, entity, Window(start, end), cure)


def losing(gpu: int, start: float = 0.0, end: float = FOREVER) -> ValueFault:
    """Fallen off the bus: still listed, attributes and samples blank, and no group takes it."""
    return ValueFault(ValueFaultKind.LOST, 0.0, EVERY_FIELD, gpu, None, Window(start, end))


@dataclass(frozen=True)
class Lock:
    """Another client holds the profiling hardware: new watches through the module are refused."""

    window: Window = Window()
    code: Code = Code.PROFILING_LIBRARY_ERROR


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
