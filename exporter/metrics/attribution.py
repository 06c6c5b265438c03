"""Attribution: allocations as join series, and what each workload used."""

from __future__ import annotations

from collections.abc import Iterator

from exporter.attribution.holdings import Workload
from exporter.attribution.view import AttributionView
from exporter.core.snapshot import EntityView, Snapshot
from exporter.metrics.family import DEVICE, Family, Group, Profile, Sample, Type, device_labels, join, labels

_WHO = ("namespace", "pod", "container", "job_id", "user", "account")
ALLOCATION = Family(
    "allocation",
    Type.INFO,
    "",
    "Which pod or job holds a device: join it on the device's labels. A shared device has one series per pod or job. "
    "With the API server also the labels from --kubernetes.pod-labels (label_NAME), pod-uid and pod-owner (owner_kind, "
    "owner_name, queue).",
    labels=(*DEVICE, *_WHO, "sharing"),
    profile=Profile.MINIMAL,
)
ALLOCATED = Family(
    "allocated",
    Type.GAUGE,
    "",
    "1 when the device is allocated, 0 when it is not; absent when no attribution source can tell.",
    profile=Profile.MINIMAL,
)
ALLOCATABLE = Family(
    "allocatable",
    Type.GAUGE,
    "",
    "1 when the kubelet can allocate the device (a device plugin offers it and reports it healthy), allocated or not; "
    "else 0. Absent where no device plugin offers GPUs, and before Kubernetes 1.23.",
)
MIG_SHARE = Family(
    "mig_share_ratio",
    Type.GAUGE,
    "ratio",
    "Compute slices of a MIG instance over those of its board: one second of it in GPU-seconds. Absent on "
    "whole GPUs, and where the model is not in the table of peaks.",
)
WORKLOAD_TIME = Family(
    "workload_time_seconds",
    Type.COUNTER,
    "seconds",
    "GPU-seconds of a workload by part, over all devices it holds on this node. A MIG instance is a device: its second "
    "counts as one, as in time_seconds_total; weight it with mig_share_ratio. Ends some minutes after the workload.",
    labels=(*_WHO, "part"),
    profile=Profile.MINIMAL,
)
UNATTRIBUTED = Family(
    "unattributed_time_seconds",
    Type.COUNTER,
    "seconds",
    "GPU time by part that belongs to no workload, or that cannot be split among those sharing the device. Together "
    "with workload_time_seconds_total it adds up to time_seconds_total.",
    labels=(*DEVICE, "part"),
)
WORKLOAD_MEMORY = Family(
    "workload_memory_bytes", Type.GAUGE, "bytes", "Device memory held by a workload's processes.", labels=_WHO
)
WORKLOAD_PROCESSES = Family(
    "workload_processes", Type.GAUGE, "", "Processes of a workload that hold a GPU.", labels=_WHO
)
UP = Family(
    "attribution_up",
    Type.GAUGE,
    "",
    "1 when the last read of an attribution source succeeded and is recent, else 0.",
    labels=("source",),
    profile=Profile.MINIMAL,
)
LAST_SUCCESS = Family(
    "attribution_last_success_timestamp_seconds",
    Type.GAUGE,
    "seconds",
    "When an attribution source was last read successfully.",
    labels=("source",),
)
UNRESOLVED = Family(
    "attribution_unresolved",
    Type.GAUGE,
    "",
    "Device ids, files or processes reported by an attribution source that match no device here, by kind.",
    labels=("source", "kind"),
)


def _who(workload: Workload) -> str:
    return labels(**workload._asdict())


def _collect(snapshot: Snapshot) -> Iterator[Sample]:
    for entity in snapshot.entities:
        if entity.present and entity.hardware is not None and entity.hardware.mig_share is not None:
            yield Sample(MIG_SHARE, device_labels(entity), entity.hardware.mig_share)
    view = snapshot.attribution
    if view is None:
        return
    devices = {entity.device.entity: device_labels(entity) for entity in snapshot.entities}
    for holding in view.holdings:
        who = join(_who(holding.workload), labels(sharing=holding.sharing.value, **holding.labels))
        yield Sample(ALLOCATION, join(devices[holding.entity], who), 1)
    for entity in snapshot.entities:
        yield from _allocated(entity, view)
    for workload in view.workloads:
        who = _who(workload.workload)
        for part, seconds in workload.parts.items():
            yield Sample(WORKLOAD_TIME, join(who, f'part="{part}"'), seconds)
        if workload.memory_bytes is not None:
            yield Sample(WORKLOAD_MEMORY, who, workload.memory_bytes)
        if workload.processes is not None:
            yield Sample(WORKLOAD_PROCESSES, who, workload.processes)
    for device, parts in view.unattributed.items():
        for part, seconds in parts.items():
            yield Sample(UNATTRIBUTED, join(devices[device], f'part="{part}"'), seconds)
    for source in (*view.sources, *view.helpers):
        name = labels(source=source.name)
        yield Sample(UP, name, float(source.up))
        if source.last_success is not None:
            yield Sample(LAST_SUCCESS, name, source.last_success)
        for kind, count in source.unresolved.items():
            yield Sample(UNRESOLVED, join(name, labels(kind=kind)), count)


def _allocated(entity: EntityView, view: AttributionView) -> Iterator[Sample]:
    if not entity.present or entity.device.mig_enabled:
        return  # a board that is cut into instances is handed out through them
    device, allocated = device_labels(entity), view.allocated(entity.device.entity)
    if allocated is not None:
        yield Sample(ALLOCATED, device, float(allocated))
    if view.allocatable is not None:
        yield Sample(ALLOCATABLE, device, float(entity.device.entity in view.allocatable))


GROUP = Group(
    "Attribution",
    (
        ALLOCATION,
        ALLOCATED,
        ALLOCATABLE,
        MIG_SHARE,
        WORKLOAD_TIME,
        UNATTRIBUTED,
        WORKLOAD_MEMORY,
        WORKLOAD_PROCESSES,
        UP,
        LAST_SUCCESS,
        UNRESOLVED,
    ),
    _collect,
)
