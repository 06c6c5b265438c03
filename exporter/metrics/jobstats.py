"""The series that jobstats queries: names, units and labels of github.com/plazonic/nvidia_gpu_prometheus_exporter.

What differs from that exporter, and why: docs/bare-metal.md, "jobstats".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from exporter.core.snapshot import EntityView, Snapshot
from exporter.metrics.family import Family, Group, Profile, Sample, Type, join, labels

NAMESPACE = "nvidia_gpu_"
LABELS = ("ordinal", "minor_number", "uuid", "name", "GPU_I_ID", "jobid", "userid")  # GPU_I_ID on MIG instances only


def _gauge(name: str, text: str, labels: tuple[str, ...] = LABELS) -> Family:
    return Family(name, Type.GAUGE, "", text, labels, Profile.MINIMAL, NAMESPACE)


class _Value(NamedTuple):
    """A family, the field behind it, and that field's unit in the family's."""

    family: Family
    field: str
    scale: float = 1.0


NUM_DEVICES = _gauge("num_devices", "Number of GPU boards.", ())
JOB_ID = _gauge("jobId", "Slurm's number of a job that holds the device.")
JOB_UID = _gauge("jobUid", "Number of the user of a job that holds the device.")
CLOCK = _gauge("clock", "Current clock of the board in MHz.", (*LABELS, "type"))
CLOCKS = {"sm": "sm_clock", "mem": "memory_clock"}

# the mean over the last window; of a device itself, be it a board or an instance. jobstats takes *_percent as ratios.
MEANS = (
    _Value(_gauge("duty_cycle", "Percentage of the last window with at least one kernel running."), "busy", 100.0),
    *(
        _Value(_gauge(name, f"{what} in the last window, from 0 to 1."), field)
        for name, field, what in (
            ("graphics_util_percent", "graphics_engine", "Share of time with the graphics or compute engine active"),
            ("sm_util_percent", "sm", "Share of time with a warp resident, averaged over SMs,"),
            ("sm_occupancy_percent", "sm_occupancy", "Resident warps over the maximum"),
            ("integer_util", "integer", "Share of time with the integer pipe active"),
            ("any_tensor_util_percent", "tensor", "Share of time with the tensor pipe active"),
            ("dram_bw_util_percent", "dram", "Share of time in which the device memory interface moved data"),
            ("fp64_util_percent", "fp64", "Share of time with the FP64 pipe active"),
            ("fp32_util_percent", "fp32", "Share of time with the FP32 pipe active"),
            ("fp16_util_percent", "fp16", "Share of time with the FP16 pipe active"),
        )
    ),
    *(
        _Value(_gauge(name, f"Bytes per second {what} in the last window."), field)
        for name, field, what in (
            ("pcie_tx_per_sec", "pcie_transmit", "sent over PCIe"),
            ("pcie_rx_per_sec", "pcie_receive", "received over PCIe"),
            ("nvlink_total_rx_per_sec", "nvlink_receive", "received over all NVLink links"),
            ("nvlink_total_tx_per_sec", "nvlink_transmit", "sent over all NVLink links"),
        )
    ),
)
# the latest value of a device itself; no instance has a power
INSTANTS = (
    _Value(_gauge("memory_used_bytes", "Memory of the device in use, in bytes."), "memory_used"),
    _Value(_gauge("memory_total_bytes", "Total memory of the device, in bytes."), "memory_total"),
    _Value(_gauge("power_usage_milliwatts", "Power drawn by the board, in milliwatts."), "power", 1000.0),
)
# the latest value of the board, which holds for its instances too
OF_BOARD = (_Value(_gauge("temperature_celsius", "Temperature of the GPU in degrees Celsius."), "temperature"),)


class _Holder(NamedTuple):
    """A job on a device. ``uid`` None: not known."""

    job: str
    uid: int | None

    @property
    def labels(self) -> str:
        return labels(jobid=self.job, userid="" if self.uid is None else str(self.uid))


def _collect(snapshot: Snapshot) -> Iterator[Sample]:
    if any(source.up for source in snapshot.sources):
        yield Sample(NUM_DEVICES, "", snapshot.present_gpus)
    present = [view for view in snapshot.entities if view.present]
    boards = {view.device.entity.uuid: view.instants for view in present if view.device.entity.gpu_instance is None}
    holders = _holders(snapshot)
    for view in present:
        device = _device(view)
        held = holders.get(view.device.entity, {}).values()
        values = list(_values(view, boards.get(view.device.entity.uuid, {})))
        for who in [holder.labels for holder in held] or [""]:
            own = join(device, who)
            for family, extra, value in values:
                yield Sample(family, join(own, extra), value)
        for holder in held:
            own = join(device, holder.labels)
            if holder.job.isascii() and holder.job.isdecimal():
                yield Sample(JOB_ID, own, float(holder.job))
            if holder.uid is not None:
                yield Sample(JOB_UID, own, holder.uid)


def _holders(snapshot: Snapshot) -> Mapping[tuple[str, int | None], Mapping[str, _Holder]]:
    """Jobs by entity and number. One job is one holder, whatever else is told of it."""
    found: dict[tuple[str, int | None], dict[str, _Holder]] = {}
    for holding in snapshot.attribution.holdings if snapshot.attribution is not None else ():
        job = holding.workload.job_id
        if not job:
            continue
        jobs = found.setdefault(holding.entity, {})
        if job not in jobs or jobs[job].uid is None:
            jobs[job] = _Holder(job, holding.uid)
    return found


def _device(view: EntityView) -> str:
    """The labels of a device; an instance has its own UUID, and its board's numbers."""
    facts, instance = view.device, view.device.entity.gpu_instance
    return labels(
        ordinal=facts.index,
        minor_number=facts.minor,
        uuid=facts.entity.uuid if instance is None else facts.mig_uuid,
        name=f"{facts.model} MIG {facts.mig_profile}" if facts.model and facts.mig_profile else facts.model,
        GPU_I_ID="" if instance is None else str(instance),
    )


def _values(view: EntityView, board: Mapping[str, float]) -> Iterator[tuple[Family, str, float]]:
    """Family, its own label, value."""
    for listed, known in ((MEANS, view.means), (INSTANTS, view.instants), (OF_BOARD, board)):
        for family, field, scale in listed:
            if field in known:
                yield family, "", known[field] * scale
    for kind, field in CLOCKS.items():
        if field in board:
            yield CLOCK, f'type="{kind}"', board[field] / 1e6


GROUP = Group(
    "jobstats (--compat.jobstats)",
    (NUM_DEVICES, *(each.family for each in (*MEANS, *INSTANTS, *OF_BOARD)), CLOCK, JOB_ID, JOB_UID),
    _collect,
)
