"""The exporter's process and Python, as prometheus_client's collectors report them under their usual names."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from exporter.core.snapshot import Snapshot
from exporter.metrics.family import Family, Group, Sample, Type, labels

if TYPE_CHECKING:
    from prometheus_client.registry import Collector


def _family(name: str, kind: Type, unit: str, text: str, *names: str) -> Family:
    return Family(name, kind, unit, text, labels=names, namespace="")


FAMILIES = (
    _family("process_cpu_seconds", Type.COUNTER, "seconds", "Total user and system CPU time spent in seconds."),
    _family("process_resident_memory_bytes", Type.GAUGE, "bytes", "Resident memory size in bytes."),
    _family("process_virtual_memory_bytes", Type.GAUGE, "bytes", "Virtual memory size in bytes."),
    _family(
        "process_start_time_seconds",
        Type.GAUGE,
        "seconds",
        "Start time of the process since unix epoch in seconds.",
    ),
    _family("process_open_fds", Type.GAUGE, "", "Number of open file descriptors."),
    _family("process_max_fds", Type.GAUGE, "", "Maximum number of open file descriptors."),
    _family(
        "python",
        Type.INFO,
        "",
        "Python platform information.",
        "version",
        "implementation",
        "major",
        "minor",
        "patchlevel",
    ),
)


class _Collectors:
    """Made when they are first asked: the import takes 2 MiB that a profile without these families does not need."""

    @cached_property
    def both(self) -> tuple[Collector, ...]:
        from prometheus_client import PlatformCollector, ProcessCollector

        return ProcessCollector(registry=None), PlatformCollector(registry=None)


def process_group() -> Group:
    """Of this very process."""
    collectors = _Collectors()
    by_name = {family.series_name: family for family in FAMILIES}

    def collect(snapshot: Snapshot) -> Iterator[Sample]:
        for collector in collectors.both:
            for metric in collector.collect():
                for sample in metric.samples:
                    family = by_name.get(sample.name)
                    if family is not None:  # else a newer prometheus_client has one more
                        yield Sample(family, labels(**sample.labels), sample.value)

    return Group("The exporter's process", FAMILIES, collect)
