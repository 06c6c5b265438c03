"""How near a measurement is to the hardware's peak. Pure functions; None where an input or a peak is not known.

A ratio may exceed 1 where the datasheet's figure can be exceeded (an H100 above its reference clock of 1830 MHz);
nothing is clamped. Arguments are means over one interval, in the units of ``exporter.fields``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from exporter.hardware.peaks import Peaks

# Bytes per second of one lane, one direction: transfer rate x encoding / 8. PCIe base specifications: 8b/10b for
# generations 1 and 2, 128b/130b for 3 to 5, flits of 242 of 256 bytes from 6 on. Packet headers are not taken off:
# real copies reach 0.8 to 0.9 of this.
PCIE_LANE_BYTES: Mapping[int, float] = {
    1: 2.5e9 * 8 / 10 / 8,
    2: 5e9 * 8 / 10 / 8,
    3: 8e9 * 128 / 130 / 8,
    4: 16e9 * 128 / 130 / 8,
    5: 32e9 * 128 / 130 / 8,
    6: 64e9 * 242 / 256 / 8,
    7: 128e9 * 242 / 256 / 8,
}


@dataclass(frozen=True, slots=True)
class Saturation:
    """One device against its peaks."""

    tensor_peak: float | None = None  # tensor work of the datasheet's, ratio
    tensor_flops: Mapping[str, float] = field(default_factory=dict)  # estimate per second, if all work were this type
    dram_bytes_per_second: float | None = None  # estimate
    pcie: Mapping[str, float] = field(default_factory=dict)  # direction -> ratio
    nvlink: Mapping[str, float] = field(default_factory=dict)  # direction -> ratio
    power: float | None = None  # between the idle floor and the limit, ratio
    attainable: Mapping[str, float] = field(default_factory=dict)  # unit -> published ceiling, ratio


def saturation(values: Mapping[str, float], peaks: Peaks | None, idle_watts: float | None) -> Saturation:
    """Everything that follows from ``values``, by field; what is not in them is not known.

    PCIe takes the maximum link, not the current one (idle links drop to generation 1). Where the driver does not say
    it, the model's own is taken; a slot may be narrower, so that the driver's word comes first.
    """
    tensor, clock = values.get("tensor"), values.get("sm_clock")
    generation = values.get("pcie_link_generation_max", peaks.pcie_generation if peaks else None)
    lanes = values.get("pcie_link_width_max", peaks.pcie_lanes if peaks else None)
    limit = values.get("power_limit", peaks.power_watts if peaks else None)
    directions = ("transmit", "receive")
    pcie = {way: pcie_saturation_ratio(values.get(f"pcie_{way}"), generation, lanes) for way in directions}
    nvlink = {way: nvlink_saturation_ratio(values.get(f"nvlink_{way}"), peaks) for way in directions}
    return Saturation(
        tensor_peak=tensor_peak_ratio(tensor, clock, peaks),
        tensor_flops=tensor_flops(tensor, clock, peaks),
        dram_bytes_per_second=dram_bytes_per_second(values.get("dram"), peaks),
        pcie={way: ratio for way, ratio in pcie.items() if ratio is not None},
        nvlink={way: ratio for way, ratio in nvlink.items() if ratio is not None},
        power=power_ratio(values.get("power"), idle_watts, limit),
        attainable=peaks.attainable if peaks else {},
    )


def tensor_peak_ratio(tensor: float | None, sm_clock: float | None, peaks: Peaks | None) -> float | None:
    """Tensor-pipe activity as a ratio of the datasheet's peak: activity x SM clock / reference clock."""
    if tensor is None or sm_clock is None or peaks is None or peaks.reference_clock_hertz is None:
        return None
    return tensor * sm_clock / peaks.reference_clock_hertz


def tensor_flops(tensor: float | None, sm_clock: float | None, peaks: Peaks | None) -> Mapping[str, float]:
    """Estimated dense FLOP/s by data type, each as if all tensor work were of that type; no counter shows the type."""
    ratio = tensor_peak_ratio(tensor, sm_clock, peaks)
    if ratio is None or peaks is None:
        return {}
    return {dtype: ratio * peak for dtype, peak in peaks.flops.items()}


def dram_bytes_per_second(dram: float | None, peaks: Peaks | None) -> float | None:
    """Estimated bytes per second, both ways together: share of cycles in which the memory moved data x bandwidth."""
    if dram is None or peaks is None or peaks.dram_bytes_per_second is None:
        return None
    return dram * peaks.dram_bytes_per_second


def pcie_bytes_per_second(generation: float | None, lanes: float | None) -> float | None:
    """What a link carries in one direction; None for a generation that is not known here."""
    if generation is None or not lanes or generation not in PCIE_LANE_BYTES:
        return None
    return PCIE_LANE_BYTES[int(generation)] * lanes


def pcie_saturation_ratio(rate: float | None, generation: float | None, lanes: float | None) -> float | None:
    """``rate`` in bytes per second of one direction over what the link carries."""
    capacity = pcie_bytes_per_second(generation, lanes)
    return None if rate is None or capacity is None else rate / capacity


def nvlink_saturation_ratio(rate: float | None, peaks: Peaks | None) -> float | None:
    """``rate`` in bytes per second of one direction over all links of the model together; full is about 0.85."""
    if rate is None or peaks is None or peaks.nvlink_bytes_per_second is None:
        return None
    return rate / peaks.nvlink_bytes_per_second


def power_ratio(power: float | None, idle_watts: float | None, limit_watts: float | None) -> float | None:
    """(power - idle) / (limit - idle). Slightly negative just below the floor learnt so far, above 1 over the limit."""
    if power is None or idle_watts is None or limit_watts is None or limit_watts <= idle_watts:
        return None
    return (power - idle_watts) / (limit_watts - idle_watts)
