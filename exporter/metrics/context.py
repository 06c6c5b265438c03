"""Device context: power, temperature, clocks, memory, errors, links. Once per board, never per MIG instance."""

from __future__ import annotations

from collections.abc import Iterator

from exporter.core.snapshot import Snapshot
from exporter.metrics.family import DEVICE, Family, Group, Profile, Sample, Type, device_labels, join, labels

INFO = Family(
    "",
    Type.INFO,
    "",
    "Description of the device: join other series on gpu, uuid, gpu_instance.",
    labels=(*DEVICE, "model", "pci_bus_id", "driver_version", "minor", "mig_profile"),
    profile=Profile.MINIMAL,
    namespace="honest_gpu",
)


def _gauge(name: str, unit: str, text: str, profile: Profile = Profile.DEFAULT) -> Family:
    return Family(name, Type.GAUGE, unit, text, profile=profile)


def _counter(name: str, unit: str, text: str, profile: Profile = Profile.DEFAULT) -> Family:
    return Family(name, Type.COUNTER, unit, text, profile=profile)


GAUGES = {
    "power": _gauge("power_watts", "watts", "Power drawn by the whole board.", Profile.MINIMAL),
    "power_limit": _gauge("power_limit_watts", "watts", "Enforced power limit of the board."),
    "temperature": _gauge("temperature_celsius", "celsius", "Temperature of the GPU."),
    "memory_temperature": _gauge("memory_temperature_celsius", "celsius", "Temperature of the device memory."),
    "sm_clock": _gauge("sm_clock_hertz", "hertz", "Current clock of the SMs."),
    "memory_clock": _gauge("memory_clock_hertz", "hertz", "Current clock of the device memory.", Profile.FULL),
    "memory_used": _gauge("memory_used_bytes", "bytes", "Device memory in use.", Profile.MINIMAL),
    "memory_free": _gauge("memory_free_bytes", "bytes", "Device memory that is free.", Profile.FULL),
    "memory_total": _gauge("memory_total_bytes", "bytes", "Total device memory."),
    "memory_reserved": _gauge("memory_reserved_bytes", "bytes", "Device memory reserved by the driver.", Profile.FULL),
    "retired_pages": _gauge("retired_pages", "", "Memory pages retired.", Profile.FULL),
    "remapped_rows_corrected": _gauge(
        "remapped_rows_corrected", "", "Rows remapped after correctable errors.", Profile.FULL
    ),
    "remapped_rows_uncorrected": _gauge(
        "remapped_rows_uncorrected", "", "Rows remapped after uncorrectable errors.", Profile.FULL
    ),
    "remap_failed": _gauge("row_remap_failed", "", "1 when remapping a row has failed.", Profile.FULL),
    "pcie_link_generation": _gauge(
        "pcie_link_generation", "", "Current PCIe generation; an idle link drops to 1.", Profile.FULL
    ),
    "pcie_link_generation_max": _gauge(
        "pcie_link_generation_max", "", "Highest PCIe generation of this slot.", Profile.FULL
    ),
    "pcie_link_width": _gauge("pcie_link_width", "", "Current number of PCIe lanes.", Profile.FULL),
    "pcie_link_width_max": _gauge(
        "pcie_link_width_max", "", "Largest number of PCIe lanes of this slot.", Profile.FULL
    ),
    "nvlink_links_up": _gauge("nvlink_links_up", "", "NVLink links that are up."),
    "processes": _gauge("processes", "", "Processes with a context on the device."),
}
COUNTERS = {
    "energy": _counter(
        "energy_joules",
        "joules",
        "Energy since this exporter started; from the driver's counter, otherwise integrated power.",
        Profile.MINIMAL,
    ),
    "pcie_replay": _counter("pcie_replays", "", "PCIe replays since this exporter started."),
    "ecc_corrected": _counter("ecc_corrected_errors", "", "Corrected memory errors seen.", Profile.FULL),
    "ecc_uncorrected": _counter("ecc_uncorrected_errors", "", "Uncorrected memory errors seen.", Profile.FULL),
}
CLOCK_EVENTS = Family(
    "clock_event_seconds",
    Type.COUNTER,
    "seconds",
    "Seconds for which the driver gave this reason for its clocks; sampled once per window; absent until it happens.",
    labels=(*DEVICE, "reason"),
)
XIDS = Family(
    "xid_errors", Type.COUNTER, "", "Xid errors seen since this exporter started, by code.", labels=(*DEVICE, "xid")
)


def _collect(snapshot: Snapshot) -> Iterator[Sample]:
    for view in snapshot.entities:
        device, facts = device_labels(view), view.device
        yield Sample(
            INFO,
            join(
                device,
                labels(
                    model=facts.model,
                    pci_bus_id=facts.pci_bus_id,
                    driver_version=facts.driver_version,
                    minor=facts.minor,
                    mig_profile=facts.mig_profile,
                ),
            ),
            1,
        )
        for field, family in GAUGES.items():
            if field in view.instants:
                yield Sample(family, device, view.instants[field])
        for field, family in COUNTERS.items():
            if field in view.totals.amounts:
                yield Sample(family, device, view.totals.amounts[field])
        for (field, label), seconds in view.totals.active.items():
            if field == "clock_event" and seconds > 0:
                yield Sample(CLOCK_EVENTS, join(device, labels(reason=label)), seconds)
        for (field, label), count in view.totals.events.items():
            if field == "xid":
                yield Sample(XIDS, join(device, labels(xid=label)), count)


GROUP = Group("Device context", (INFO, *GAUGES.values(), *COUNTERS.values(), CLOCK_EVENTS, XIDS), _collect)
