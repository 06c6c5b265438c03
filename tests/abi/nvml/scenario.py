"""What the player plays, as types; scenario_file.py writes them for the C library.

Every number of a GPU may be a constant, a return code (the call fails with it), ``steps`` over time, or a ``Counter``
that integrates a rate. None leaves a thing out: its function answers NOT_SUPPORTED. Times are seconds of scenario time.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..player.faults import CallFault
from ..player.values import Counter, Steps, steps
from .codes import Architecture, Brand, Code, EventType, ValueType
from .happenings import Event

__all__ = [
    "ALL_LINKS",
    "MIB",
    "NOT_AVAILABLE",
    "Bar1",
    "Clocks",
    "ComputeInstance",
    "Counter",
    "Ecc",
    "FromPower",
    "Gpm",
    "Gpu",
    "GpuInstance",
    "Layout",
    "Memory",
    "Mig",
    "NvLink",
    "Pcie",
    "Power",
    "Process",
    "Profile",
    "RemappedRows",
    "RetiredPages",
    "Scenario",
    "Steps",
    "Value",
    "steps",
]

MIB = 1024**2
ALL_LINKS = 0xFFFFFFFF
NOT_AVAILABLE = -1.0
"""Comes out as all ones, NVML's 'value not available'."""


# ---- values over time ----


@dataclass(frozen=True)
class FromPower:
    """Energy in millijoules: start + the integral of the power drawn."""

    start_mj: float = 0.0


Value = float | Code | Steps | Counter


# ---- parts of a GPU ----


@dataclass(frozen=True)
class Power:
    draw_mw: Value | None
    limit_mw: float | None = None
    min_mw: float | None = None
    max_mw: float | None = None
    average_mw: Value | None = None
    """The one-second mean of fields; None where the board has only the instant value."""
    enforced_mw: Value | None = None
    """The limit in force, where another one than limit_mw."""


@dataclass(frozen=True)
class Clocks:
    """In MHz."""

    graphics: Value | None
    sm: Value | None
    memory: Value | None
    video: Value | None = None


@dataclass(frozen=True)
class Memory:
    """In bytes. The driver's first interface adds what is reserved to what is used."""

    total: Value | None
    used: Value | None
    reserved: Value = 0.0


@dataclass(frozen=True)
class Bar1:
    total: Value
    used: Value = 0.0


@dataclass(frozen=True)
class Pcie:
    generation: Value | None
    generation_max: Value | None
    width: Value | None
    width_max: Value | None
    transmit_kib: Value | None = None
    receive_kib: Value | None = None
    replays: Value | None = 0.0
    generation_gpu_max: Value | None = None
    """What the GPU could do in another slot; None: the same as generation_max."""


@dataclass(frozen=True)
class NvLink:
    count: int
    version: Value = 4.0
    speed_mbps: Value | None = None
    state: Value = 1.0
    """Of every link that ``states`` does not name."""
    states: Mapping[int, Value] = field(default_factory=dict)
    remotes: tuple[str, ...] = ()
    """PCI addresses of the other ends, by link."""
    remote_type: Value = 2.0
    """0 a GPU, 2 a switch."""
    errors: Mapping[tuple[int, int], Value] = field(default_factory=dict)
    """By (link, counter): 0 replay, 1 recovery, 2 CRC flit, 3 CRC data, 4 ECC data."""


@dataclass(frozen=True)
class Ecc:
    enabled: Value = 1.0
    pending: Value | None = None
    corrected_volatile: Value | None = 0.0
    corrected_aggregate: Value | None = 0.0
    uncorrected_volatile: Value | None = 0.0
    uncorrected_aggregate: Value | None = 0.0
    locations: Mapping[tuple[int, int, int], Value] = field(default_factory=dict)
    """By (0 corrected | 1 uncorrected, 0 volatile | 1 aggregate, memory location)."""


@dataclass(frozen=True)
class RemappedRows:
    correctable: Value = 0.0
    uncorrectable: Value = 0.0
    pending: Value = 0.0
    failed: Value = 0.0
    banks: tuple[float, float, float, float, float] | None = None
    """How many banks have the most, many, some, few, no rows left."""


@dataclass(frozen=True)
class RetiredPages:
    single_bit: Value = 0.0
    double_bit: Value = 0.0
    pending: Value = 0.0


@dataclass(frozen=True)
class Process:
    pid: int
    name: str = ""
    kind: str = "compute"
    """compute, graphics or mps."""
    memory: Value = NOT_AVAILABLE
    alive: Value = 1.0
    instance: int | None = None
    compute: int | None = None
    sm_utilization: Value | None = None
    memory_utilization: Value | None = None


# ---- MIG ----


@dataclass(frozen=True)
class ComputeInstance:
    """One MIG device as CUDA sees it."""

    id: int
    uuid: str
    name: str
    sm_count: int
    slices: int
    memory: Memory
    bar1: Bar1 | None = None
    profile: int = 0
    placement: tuple[int, int] = (0, 0)
    ecc_sram_uncorrected: Value | None = 0.0
    extra: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True)
class GpuInstance:
    key: str
    """Of this instance within its GPU: an id may come back, as another instance, after a reconfiguration."""
    id: int
    profile: int
    """The id of its profile, as the driver numbers profiles."""
    slices: int
    memory_mib: int
    computes: tuple[ComputeInstance, ...]
    placement: tuple[int, int] = (0, 0)
    copy_engines: int = 1
    decoders: int = 0
    encoders: int = 0
    jpegs: int = 0
    ofas: int = 0
    gpm: Mapping[int, Value] = field(default_factory=dict)


@dataclass(frozen=True)
class Layout:
    """From a time on: MIG mode on with these instances, in this order, or off."""

    start: float
    instances: tuple[str, ...] = ()
    enabled: bool = True


@dataclass(frozen=True)
class Profile:
    """A kind of GPU instance; ``number`` is what callers ask for, ``id`` what instances carry."""

    number: int
    id: int
    name: str
    slices: int
    instances: int
    sm_count: int
    memory_mib: int
    copy_engines: int = 1
    decoders: int = 0
    encoders: int = 0
    jpegs: int = 0
    ofas: int = 0


@dataclass(frozen=True)
class Mig:
    instances: tuple[GpuInstance, ...] = ()
    layouts: tuple[Layout, ...] = ()
    """In the order of time; before the first one MIG is off."""
    devices_max: int = 7
    pending: Value | None = None
    profiles: tuple[Profile, ...] = ()


# ---- a GPU ----


@dataclass(frozen=True)
class Gpu:
    key: str
    uuid: str
    name: str
    pci_bus_id: str
    minor: Value
    architecture: Architecture
    compute_capability: tuple[int, int]
    power: Power
    clocks: Clocks
    clocks_max: Clocks
    memory: Memory
    pcie: Pcie | None
    brand: Brand = Brand.NVIDIA
    cores: int | None = None
    serial: str | None = None
    vbios: str | None = None
    pci_device_id: int = 0
    pci_subsystem_id: int = 0
    module_id: int | None = None
    memory_bus_width: int | None = None
    present: Value = 1.0
    """0: not there. Lists are made at initialization, unless the scenario's enumeration is live."""
    lost: Value = 0.0
    """1: still listed, and every call about it fails with GPU_IS_LOST."""
    utilization: Value | None = 0.0
    """The claim, in percent; the driver answers whole percents of its own windows."""
    memory_utilization: Value | None = 0.0
    encoder_utilization: Value | None = 0.0
    decoder_utilization: Value | None = 0.0
    energy_mj: Value | FromPower | None = FromPower()
    temperature: Value | None = 30.0
    memory_temperature: Value | None = None
    temperature_thresholds: Mapping[int, Value] = field(default_factory=dict)
    clock_reasons: Value | None = 1.0
    clock_reasons_supported: Value | None = float(0x1FF)
    violations_ns: Mapping[int, Value] = field(default_factory=dict)
    """By performance policy (0 power, 1 thermal, 2 sync boost, ...); fields 74 to 81 follow."""
    performance_state: Value | None = 0.0
    fan_speed: Value | None = None
    bar1: Bar1 | None = None
    nvlink: NvLink | None = None
    ecc: Ecc | None = None
    remapped_rows: RemappedRows | None = None
    retired_pages: RetiredPages | None = None
    persistence_mode: Value = 1.0
    compute_mode: Value = 0.0
    virtualization_mode: Value = 0.0
    gpm: Mapping[int, Value] | None = None
    """By metric id, in percent or MiB/s as GPM has them; None: the GPU has no GPM."""
    gpm_supported: Value | None = None
    """In place of whether ``gpm`` is given."""
    event_types: EventType = (
        EventType.SINGLE_BIT_ECC
        | EventType.DOUBLE_BIT_ECC
        | EventType.PERFORMANCE_STATE
        | EventType.XID
        | EventType.CLOCK
    )
    fields: Mapping[int | tuple[int, int], Value] = field(default_factory=dict)
    """By field id, or (field id, scope); in place of what the rest of the GPU would say."""
    field_types: Mapping[int, ValueType] = field(default_factory=dict)
    process_utilization: bool = True
    processes: tuple[Process, ...] = ()
    mig: Mig | None = None
    extra: Mapping[str, Value] = field(default_factory=dict)
    """Values by the player's own keys, for what has no attribute here."""


@dataclass(frozen=True)
class Gpm:
    """How the driver's GPM behaves at the edges."""

    refresh: float = 0.0
    """Samples are moments of this grid; 0: exact."""
    interval_min: float = 0.1
    short: Code | float | None = Code.NO_DATA
    """What each metric of a shorter interval is: an error, a value, or (None) what it would be anyway."""
    first: Code | float | None = None
    """What each metric is whose interval begins with an entity's first sample."""


@dataclass(frozen=True)
class Scenario:
    gpus: tuple[Gpu, ...]
    driver_version: str = "580.105.08"
    nvml_version: str = "13.580.105.08"
    cuda_version: int = 13000
    wall_offset: float | None = 1_767_225_600.0
    """Seconds since 1970 at scenario time 0; None: the real time."""
    sample_period: float = 1 / 6
    """The driver's window for the claim and for sample buffers; 0: no buffers, and the claim is instantaneous."""
    sample_ring: int = 100
    live_enumeration: bool = False
    orders: tuple[tuple[float, tuple[str, ...]], ...] = ()
    """From a time on, GPUs (by key) are listed in this order."""
    gpm: Gpm = Gpm()
    faults: tuple[CallFault, ...] = ()
    events: tuple[Event, ...] = ()
