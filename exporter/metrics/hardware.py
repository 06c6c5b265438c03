"""Hardware peaks: how close the measurement comes to the model's peak figures."""

from __future__ import annotations

from collections.abc import Iterator

from exporter.core.snapshot import Snapshot
from exporter.metrics.family import DEVICE, Family, Group, Profile, Sample, Type, device_labels, join, labels

KNOWN = Family(
    "peaks_known",
    Type.GAUGE,
    "",
    "1 when the model's peak figures are known (exporter/peaks.yaml, --hardware.peaks-file), else 0.",
)
TENSOR_PEAK = Family(
    "tensor_peak_ratio",
    Type.GAUGE,
    "ratio",
    "Tensor activity x SM clock / reference clock: share of the datasheet's dense peak. May exceed 1 above that clock.",
)
TENSOR_FLOPS = Family(
    "tensor_flops",
    Type.GAUGE,
    "",
    "Estimate of dense FLOP per second, as if all tensor work were of this type; no counter tells the type.",
    labels=(*DEVICE, "dtype"),
    profile=Profile.FULL,
)
DRAM = Family(
    "dram_bytes_per_second",
    Type.GAUGE,
    "",
    "Estimate of device memory traffic: DRAM activity x the model's bandwidth.",
)
PCIE = Family(
    "pcie_saturation_ratio",
    Type.GAUGE,
    "ratio",
    "PCIe rate over the rate of the widest and fastest link of GPU and slot; copies reach 0.8 to 0.9.",
    labels=(*DEVICE, "direction"),
)
NVLINK = Family(
    "nvlink_saturation_ratio",
    Type.GAUGE,
    "ratio",
    "NVLink rate over the rate of all links of the model; about 0.85 is the practical maximum.",
    labels=(*DEVICE, "direction"),
)
POWER = Family(
    "power_ratio",
    Type.GAUGE,
    "ratio",
    "(power - idle) / (limit - idle); idle is learnt while the board is idle; absent until then.",
)
ATTAINABLE = Family(
    "attainable_ratio",
    Type.GAUGE,
    "ratio",
    "Published share of a unit's peak that real code attains.",
    labels=(*DEVICE, "unit"),
    profile=Profile.FULL,
)


def _collect(snapshot: Snapshot) -> Iterator[Sample]:
    for view in snapshot.entities:
        if view.hardware is None or not view.present:
            continue
        device, found = device_labels(view), view.hardware.saturation
        yield Sample(KNOWN, device, float(view.hardware.known))
        for family, value in (
            (TENSOR_PEAK, found.tensor_peak),
            (DRAM, found.dram_bytes_per_second),
            (POWER, found.power),
        ):
            if value is not None:
                yield Sample(family, device, value)
        for family, label, values in (
            (TENSOR_FLOPS, "dtype", found.tensor_flops),
            (PCIE, "direction", found.pcie),
            (NVLINK, "direction", found.nvlink),
            (ATTAINABLE, "unit", found.attainable),
        ):
            for key, value in values.items():
                yield Sample(family, join(device, labels(**{label: key})), value)


GROUP = Group(
    "Compared with the hardware's peaks",
    (KNOWN, TENSOR_PEAK, TENSOR_FLOPS, DRAM, PCIE, NVLINK, POWER, ATTAINABLE),
    _collect,
)
