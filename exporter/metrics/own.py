"""The exporter itself: build, memory, CPU, configuration, web server."""

from __future__ import annotations

import os
import platform
import resource
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from exporter.core.snapshot import Snapshot
from exporter.metrics.family import Family, Group, Profile, Sample, Type, labels
from exporter.version import VERSION

BUILD = Family(
    "build",
    Type.INFO,
    "",
    "Version of the exporter and of its Python.",
    labels=("version", "python"),
    profile=Profile.MINIMAL,
)
RELOAD_OK = Family(
    "config_last_reload_successful",
    Type.GAUGE,
    "",
    "0 when the last reload was rejected and the previous configuration is still in force.",
    labels=(),
)
RELOAD_TIME = Family(
    "config_last_reload_success_timestamp_seconds",
    Type.GAUGE,
    "seconds",
    "When the configuration in force was loaded.",
    labels=(),
)
CONNECTIONS = Family(
    "web_connections", Type.COUNTER, "", "Connections by outcome.", labels=("event",), profile=Profile.FULL
)
CPU = Family("process_cpu_seconds", Type.COUNTER, "seconds", "CPU time of the exporter.", labels=(), namespace="")
RSS = Family(
    "process_resident_memory_bytes", Type.GAUGE, "bytes", "Resident memory of the exporter.", labels=(), namespace=""
)
START = Family(
    "process_start_time_seconds", Type.GAUGE, "seconds", "When the exporter started.", labels=(), namespace=""
)


@dataclass(slots=True)
class OwnState:
    """What the wiring knows of the daemon; read when a Snapshot is turned into samples."""

    started: float
    reload_successful: bool = True
    reload_timestamp: float = 0.0
    connections: Callable[[], Mapping[str, int]] = dict  # how often what happened, asked for when it is needed


def own_group(state: OwnState) -> Group:
    """The group of this daemon."""

    def collect(snapshot: Snapshot) -> Iterator[Sample]:
        yield Sample(BUILD, labels(version=VERSION, python=platform.python_version()), 1)
        yield Sample(RELOAD_OK, "", float(state.reload_successful))
        yield Sample(RELOAD_TIME, "", state.reload_timestamp)
        for event, count in state.connections().items():
            yield Sample(CONNECTIONS, labels(event=event), count)
        usage = resource.getrusage(resource.RUSAGE_SELF)
        yield Sample(CPU, "", usage.ru_utime + usage.ru_stime)
        rss = _resident()
        if rss is not None:
            yield Sample(RSS, "", rss)
        yield Sample(START, "", state.started)

    return Group("The exporter itself", (BUILD, RELOAD_OK, RELOAD_TIME, CONNECTIONS, CPU, RSS, START), collect)


def _resident() -> float | None:
    """Bytes, from /proc/self/statm (proc(5): second number, in pages); None where there is no /proc."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return float(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError, ValueError):
        return None
