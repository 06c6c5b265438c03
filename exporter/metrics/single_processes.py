"""Individual processes on a device: opt-in, bounded, and gone when the process is."""

from __future__ import annotations

from collections.abc import Iterator

from exporter.core.snapshot import Snapshot
from exporter.metrics.family import DEVICE, Family, Group, Profile, Sample, Type, device_labels, join, labels

_LABELS = (*DEVICE, "pid", "command")
MEMORY = Family(
    "process_memory_bytes",
    Type.GAUGE,
    "bytes",
    "Device memory of one process; only with --processes.families. Absent where the driver does not report it.",
    labels=_LABELS,
    profile=Profile.MINIMAL,
)
SM = Family(
    "process_sm_ratio",
    Type.GAUGE,
    "ratio",
    "Share of the time in which a process used the SMs, from the driver's samples since the last read; only with "
    "--processes.families. Absent (not 0) without a fresh sample, and on MIG, where the driver has none.",
    labels=_LABELS,
    profile=Profile.MINIMAL,
)
LEFT_OFF = Family(
    "processes_left_off",
    Type.GAUGE,
    "",
    "Processes of a device beyond --processes.most, which are counted here instead of exported individually.",
    profile=Profile.MINIMAL,
)
LONGEST_COMMAND = 64  # characters; the kernel keeps 15, and a process may write what it likes into them


def _collect(snapshot: Snapshot) -> Iterator[Sample]:
    listed = snapshot.attribution.processes if snapshot.attribution is not None else None
    if listed is None:
        return
    devices = {view.device.entity: device_labels(view) for view in snapshot.entities}
    for process in listed.shown:
        if process.entity not in devices:
            continue  # it ends with its device
        command = "".join(c if c.isprintable() else "?" for c in process.command[:LONGEST_COMMAND])
        who = join(devices[process.entity], labels(pid=str(process.pid), command=command))
        if process.memory_bytes is not None:
            yield Sample(MEMORY, who, process.memory_bytes)
        if process.sm is not None:
            yield Sample(SM, who, process.sm)
    for entity, count in listed.left_off.items():
        if entity in devices:
            yield Sample(LEFT_OFF, devices[entity], count)


GROUP = Group("Individual processes", (MEMORY, SM, LEFT_OFF), _collect)
