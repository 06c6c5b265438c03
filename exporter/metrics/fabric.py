"""The fabric: NVLink links, NVSwitches and Grace CPUs. A few series each, read at a long interval."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from exporter.core.fabric import PartView
from exporter.core.snapshot import Snapshot
from exporter.metrics.family import DEVICE, Family, Group, Profile, Sample, Type, device_labels, join, labels

LINK_UP = Family(
    "nvlink_link_up",
    Type.GAUGE,
    "",
    "1 for an NVLink link of a GPU that is up, 0 for one that is not: it failed, or nothing is plugged in.",
    labels=(*DEVICE, "link"),
    profile=Profile.FULL,
)
SWITCH_LINKS = Family(
    "nvswitch_links",
    Type.GAUGE,
    "",
    "NVLink links of an NVSwitch by state (up, down, disabled); unplugged ports are disabled.",
    labels=("nvswitch", "state"),
)
SWITCH_TEMPERATURE = Family(
    "nvswitch_temperature_celsius", Type.GAUGE, "celsius", "Temperature of an NVSwitch.", labels=("nvswitch",)
)
SWITCH_POWER = Family(
    "nvswitch_power_watts",
    Type.GAUGE,
    "watts",
    "Power of an NVSwitch by supply rail; on newer switches DCGM only reports vdd.",
    labels=("nvswitch", "rail"),
)
SXIDS = Family(
    "nvswitch_sxid_errors",
    Type.COUNTER,
    "",
    "SXid errors of an NVSwitch as they appear, by code; two with the same code between two reads count as one.",
    labels=("nvswitch", "severity", "sxid"),
)
CPU_RATIO = Family(
    "cpu_utilization_ratio",
    Type.GAUGE,
    "ratio",
    "Share of the time in which the cores of a Grace CPU were busy, over the last window that DCGM sampled.",
    labels=("cpu",),
)
CPU_BUSY = Family(
    "cpu_busy_seconds",
    Type.COUNTER,
    "seconds",
    "The integral of cpu_utilization_ratio; divide its rate by that of cpu_observed_seconds_total.",
    labels=("cpu",),
)
CPU_OBSERVED = Family(
    "cpu_observed_seconds", Type.COUNTER, "seconds", "Seconds that cpu_busy_seconds_total covers.", labels=("cpu",)
)
CPU_TEMPERATURE = Family(
    "cpu_temperature_celsius", Type.GAUGE, "celsius", "Temperature of a Grace CPU.", labels=("cpu",)
)
CPU_POWER = Family("cpu_power_watts", Type.GAUGE, "watts", "Power of a Grace CPU.", labels=("cpu",))
CPU_LIMIT = Family(
    "cpu_power_limit_watts",
    Type.GAUGE,
    "watts",
    "Power limit of a Grace CPU's socket.",
    labels=("cpu",),
    profile=Profile.FULL,
)
MODULE_POWER = Family(
    "cpu_module_power_watts",
    Type.GAUGE,
    "watts",
    "Power of the module that a Grace CPU is on, as its sensor reports it. It includes other parts: do not add them.",
    labels=("cpu",),
)
_GAUGES: Mapping[str, Family] = {
    "nvswitch_temperature": SWITCH_TEMPERATURE,
    "nvswitch_power": SWITCH_POWER,
    "cpu_utilization": CPU_RATIO,
    "cpu_temperature": CPU_TEMPERATURE,
    "cpu_power": CPU_POWER,
    "cpu_power_limit": CPU_LIMIT,
    "cpu_module_power": MODULE_POWER,
}
_SEVERITIES = {"nvswitch_fatal_sxid": "fatal", "nvswitch_non_fatal_sxid": "non_fatal"}


def _collect(snapshot: Snapshot) -> Iterator[Sample]:
    fabric = snapshot.fabric
    for view in snapshot.entities:
        for link, state in fabric.links.get(view.device.entity, {}).items() if view.present else ():
            if state != "disabled":
                yield Sample(LINK_UP, join(device_labels(view), labels(link=str(link))), float(state == "up"))
    for part in fabric.parts:
        yield from _of_part(part)


def _of_part(part: PartView) -> Iterator[Sample]:
    name = labels(**{part.kind: str(part.number)})  # the kinds are named as their labels
    for state, count in part.links.items():
        yield Sample(SWITCH_LINKS, join(name, labels(state=state)), count)
    for (field, label), value in part.current.items():
        yield Sample(_GAUGES[field], join(name, labels(rail=label)), value)
    for (field, code), count in part.events.items():
        yield Sample(SXIDS, join(name, labels(severity=_SEVERITIES[field], sxid=code)), count)
    for field, seconds in part.seconds.items():
        if field == "cpu_utilization":
            yield Sample(CPU_BUSY, name, seconds)
            yield Sample(CPU_OBSERVED, name, part.observed[field])


GROUP = Group(
    "Fabric and CPUs",
    (
        LINK_UP,
        SWITCH_LINKS,
        SWITCH_TEMPERATURE,
        SWITCH_POWER,
        SXIDS,
        CPU_RATIO,
        CPU_BUSY,
        CPU_OBSERVED,
        CPU_TEMPERATURE,
        CPU_POWER,
        CPU_LIMIT,
        MODULE_POWER,
    ),
    _collect,
)
