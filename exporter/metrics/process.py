"""The exporter's process and Python, under the names and with the values of prometheus_client's collectors.

Not by these collectors: importing prometheus_client takes 7 MiB of a daemon that needs 30 (docs/validation.md), and
with it come ssl and http.client, which nothing else of it needs.
"""

from __future__ import annotations

import contextlib
import os
import platform
import resource
from collections.abc import Callable, Iterator
from pathlib import Path

from exporter.core.snapshot import Snapshot
from exporter.metrics.family import Family, Group, Sample, Type, labels


def _family(name: str, kind: Type, unit: str, text: str, *names: str) -> Family:
    return Family(name, kind, unit, text, labels=names, namespace="")


CPU = _family("process_cpu_seconds", Type.COUNTER, "seconds", "Total user and system CPU time spent in seconds.")
RESIDENT = _family("process_resident_memory_bytes", Type.GAUGE, "bytes", "Resident memory size in bytes.")
VIRTUAL = _family("process_virtual_memory_bytes", Type.GAUGE, "bytes", "Virtual memory size in bytes.")
START = _family(
    "process_start_time_seconds", Type.GAUGE, "seconds", "Start time of the process since unix epoch in seconds."
)
OPEN_FDS = _family("process_open_fds", Type.GAUGE, "", "Number of open file descriptors.")
MAX_FDS = _family("process_max_fds", Type.GAUGE, "", "Maximum number of open file descriptors.")
PYTHON = _family(
    "python",
    Type.INFO,
    "",
    "Python platform information.",
    "version",
    "implementation",
    "major",
    "minor",
    "patchlevel",
)
FAMILIES = (CPU, RESIDENT, VIRTUAL, START, OPEN_FDS, MAX_FDS, PYTHON)


def process_group() -> Group:
    """Of this very process; a value that the system does not give is absent."""
    start = _start()
    python = dict(zip(("major", "minor", "patchlevel"), platform.python_version_tuple(), strict=True))
    version = labels(version=platform.python_version(), implementation=platform.python_implementation(), **python)
    reads: tuple[tuple[Family, Callable[[], float | None]], ...] = (
        (CPU, _cpu),
        (RESIDENT, lambda: _memory(1)),
        (VIRTUAL, lambda: _memory(0)),
        (START, lambda: start),
        (OPEN_FDS, lambda: float(len(os.listdir("/proc/self/fd")))),
        (MAX_FDS, lambda: float(resource.getrlimit(resource.RLIMIT_NOFILE)[0])),
    )

    def collect(snapshot: Snapshot) -> Iterator[Sample]:
        for family, read in reads:
            with contextlib.suppress(OSError, ValueError, IndexError):
                if (value := read()) is not None:
                    yield Sample(family, "", value)
        yield Sample(PYTHON, version, 1.0)

    return Group("The exporter's process", FAMILIES, collect)


def _cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def _memory(column: int) -> float:
    """Bytes. /proc/self/statm (proc(5)): size, then resident, in pages."""
    return float(Path("/proc/self/statm").read_text(encoding="ascii").split()[column]) * os.sysconf("SC_PAGE_SIZE")


def _start() -> float | None:
    """Unix seconds. /proc/self/stat (proc(5)): the 22nd value is ticks since boot; /proc/stat has the time of boot."""
    try:
        stat = Path("/proc/self/stat").read_text(encoding="utf-8", errors="replace")
        ticks = float(stat.rpartition(")")[2].split()[19])
        lines = Path("/proc/stat").read_text(encoding="ascii").splitlines()
        boot = next(float(line.split()[1]) for line in lines if line.startswith("btime "))
    except (OSError, ValueError, IndexError, StopIteration):
        return None
    return boot + ticks / os.sysconf("SC_CLK_TCK")
