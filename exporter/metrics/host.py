"""Host pipeline: where the seconds go before the GPU. Not a second node_exporter."""

from __future__ import annotations

from collections.abc import Iterator

from exporter.core.snapshot import Snapshot
from exporter.metrics.family import Family, Group, Profile, Sample, Type, device_labels, labels

_OF = "of the processes that hold the device and their descendants"
CPU = Family("host_process_cpu_seconds", Type.COUNTER, "seconds", f"CPU time {_OF}.")
MAIN_THREAD = Family(
    "host_main_thread_cpu_seconds",
    Type.COUNTER,
    "seconds",
    "CPU time of the main threads of the processes that hold the device: near 1 per second, they are saturated.",
)
READ = Family("host_read_bytes", Type.COUNTER, "bytes", f"Bytes read from storage {_OF}.")
WRITTEN = Family("host_written_bytes", Type.COUNTER, "bytes", f"Bytes written to storage {_OF}.", profile=Profile.FULL)
BLOCKED_TIME = Family(
    "host_block_io_seconds",
    Type.COUNTER,
    "seconds",
    "Time main threads waited for storage; absent where the kernel does not record it.",
    profile=Profile.FULL,
)
LOADERS = Family("host_loaders", Type.GAUGE, "", "Data-loader processes among their descendants, recognised by name.")
RUNNABLE = Family("host_runnable_threads", Type.GAUGE, "", "Threads on a CPU or waiting for one.", profile=Profile.FULL)
BLOCKED = Family(
    "host_blocked_threads", Type.GAUGE, "", "Threads in uninterruptible sleep, mostly storage.", profile=Profile.FULL
)
PRESSURE = Family(
    "host_pressure_seconds",
    Type.COUNTER,
    "seconds",
    "Time since boot in which tasks of the node waited (kind some: at least one; full: all) for a resource. Linux PSI.",
    labels=("resource", "kind"),
)
RDMA = {
    way: Family(
        f"host_rdma_{way}_bytes", Type.COUNTER, "bytes", f"Bytes {verb} by an RDMA port.", labels=("device", "port")
    )
    for way, verb in (("receive", "received"), ("transmit", "sent"))
}
RDMA_ERRORS = Family(
    "host_rdma_errors",
    Type.COUNTER,
    "",
    "Errors of an RDMA port, by the kernel's counter name.",
    labels=("device", "port", "error"),
    profile=Profile.FULL,
)


def _collect(snapshot: Snapshot) -> Iterator[Sample]:
    for view in snapshot.entities:
        use = snapshot.host_use.get(view.device.entity)
        if use is None:
            continue
        device = device_labels(view)
        for family, value in (
            (CPU, use.cpu_seconds),
            (MAIN_THREAD, use.main_thread_cpu_seconds),
            (READ, use.read_bytes),
            (WRITTEN, use.written_bytes),
            (BLOCKED_TIME, use.block_seconds),
            (LOADERS, use.loaders),
            (RUNNABLE, use.runnable_threads),
            (BLOCKED, use.blocked_threads),
        ):
            if value is not None:
                yield Sample(family, device, value)
    if snapshot.host is None:
        return
    for resource, pressure in snapshot.host.reading.pressure.items():
        for kind, stall in (("some", pressure.some), ("full", pressure.full)):
            if stall is not None:
                yield Sample(PRESSURE, labels(resource=resource, kind=kind), stall.seconds)
    for port in snapshot.host.reading.rdma:
        name = labels(device=port.device, port=port.port)
        for way, count in (("receive", port.receive_bytes), ("transmit", port.transmit_bytes)):
            if count is not None:
                yield Sample(RDMA[way], name, count)
        for error, count in port.errors.items():
            yield Sample(RDMA_ERRORS, f"{name},{labels(error=error)}", count)


GROUP = Group(
    "Host pipeline",
    (
        CPU,
        MAIN_THREAD,
        READ,
        WRITTEN,
        BLOCKED_TIME,
        LOADERS,
        RUNNABLE,
        BLOCKED,
        PRESSURE,
        *RDMA.values(),
        RDMA_ERRORS,
    ),
    _collect,
)
