"""What the host's readers deliver. Counters rise as long as what they belong to lives; None: not known, never 0."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from exporter.model import Problem


@dataclass(frozen=True, slots=True)
class Stall:
    """Time in which tasks of the node waited for one resource."""

    seconds: float  # since boot
    average: Mapping[int, float]  # the kernel's running mean over 10, 60 and 300 seconds -> ratio 0..1


@dataclass(frozen=True, slots=True)
class Pressure:
    """Pressure on one resource. ``some``: at least one task waited; ``full``: all that wanted to run did."""

    some: Stall | None
    full: Stall | None  # None for cpu: the kernel does not define it for a whole node


@dataclass(frozen=True, slots=True)
class RdmaPort:
    """One port of an InfiniBand or RoCE adapter."""

    device: str
    port: str
    state: str  # "active", "down", "init", "armed", ...; empty: not known
    link_layer: str  # "InfiniBand" or "Ethernet"
    bytes_per_second: float | None  # what the link carries in one direction
    receive_bytes: int | None
    transmit_bytes: int | None
    errors: Mapping[str, int] = field(default_factory=dict)  # the kernel's name of the counter -> count
    saturated: frozenset[str] = frozenset()  # errors at the counter's highest value: it has stopped counting


@dataclass(frozen=True, slots=True)
class HolderReading:
    """One process that holds a GPU, with the processes below it that hold none themselves."""

    pid: int
    started: float  # Unix time; with the pid it says which process this is
    name: str
    cpu_seconds: float  # the process itself, all its threads, since it began
    main_thread_cpu_seconds: float | None  # the thread that runs the interpreter, since it began
    children_cpu_seconds: float  # all processes below it, since they were first seen
    children: int  # live processes below it that were read
    loaders: int  # of those, data-loader workers, as far as names show
    threads: int  # of the process itself
    threads_read: int  # of those, whose state was read: a bounded number, the oldest
    runnable_threads: int  # on a CPU or waiting for one: threads read, and the children's main threads
    blocked_threads: int  # in uninterruptible sleep, mostly storage: of the same
    read_bytes: float | None  # from storage, process and children, since first seen
    written_bytes: float | None  # to storage
    requested_bytes: float | None  # by read calls, whether storage, page cache or pipe gave them
    block_seconds: float | None  # main threads waiting for storage; None where the kernel does not count it


@dataclass(frozen=True, slots=True)
class ProcessesReading:
    """One pass over the processes that hold GPUs, by pid."""

    holders: Mapping[int, HolderReading]
    left_out: int = 0  # processes beyond the bound, not read
    problems: Sequence[Problem] = ()


@dataclass(frozen=True, slots=True)
class HostReading:
    """One pass over the node. ``pressure`` has a key for each resource that the kernel reports."""

    pressure: Mapping[str, Pressure]
    rdma: Sequence[RdmaPort]
    processes: ProcessesReading
    problems: Sequence[Problem] = ()  # of all readers
