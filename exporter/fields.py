"""The catalogue of raw fields: what a source may deliver, in which unit and range, and where it comes from.

DCGM ids and names: dcgm_fields.h (NVIDIA/DCGM); 4.6 renamed fields, the ids stayed. GPM ids: nvml.h.
Values in readings are in the unit given here (base units, ratios 0..1); sources convert *after* the test for blanks.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from math import inf

ROUNDING = 1.005  # a ratio up to here is rounding of the hardware's counters and counts as 1


class Kind(enum.Enum):
    """How values of a field add up over time."""

    RATIO = "ratio"  # mean over an interval, 0..1: integrates to seconds
    RATE = "rate"  # mean per second over an interval: integrates to a total
    COUNTER = "counter"  # the driver's own monotonic total, read at an instant
    GAUGE = "gauge"  # an instant
    ACTIVE = "active"  # 0/1 at an instant, per label: integrates to seconds per label
    EVENT = "event"  # something that happened, per label: counted


@dataclass(frozen=True, slots=True)
class Field:
    """One raw field. ``low``/``high``: the valid range, inclusive, after conversion to ``unit``."""

    kind: Kind
    unit: str
    low: float
    high: float
    dcgm: int | None = None
    gpm: int | None = None
    names: tuple[str, ...] = ()  # names in dcgm-exporter's /metrics, all dialects


CLAIM = ("busy", "memory_busy")
PIPES = ("tensor", "fp64", "fp32", "fp16", "integer", "dram")  # what can limit: order is the tie-break
PROFILING = ("graphics_engine", "sm", "sm_occupancy", *PIPES)
TENSOR_PIPES = ("tensor_imma", "tensor_hmma", "tensor_dfma", "tensor_dmma")
LINKS = ("pcie_transmit", "pcie_receive", "nvlink_transmit", "nvlink_receive")


def _ratio(dcgm: int | None, gpm: int | None, *names: str) -> Field:
    return Field(Kind.RATIO, "ratio", 0.0, ROUNDING, dcgm, gpm, tuple(f"DCGM_FI_{name}" for name in names))


def _rate(high: float, dcgm: int, gpm: int, *names: str) -> Field:
    return Field(Kind.RATE, "bytes", 0.0, high, dcgm, gpm, tuple(f"DCGM_FI_{name}" for name in names))


def _gauge(unit: str, high: float, dcgm: int | None, *names: str, low: float = 0.0) -> Field:
    return Field(Kind.GAUGE, unit, low, high, dcgm, None, tuple(f"DCGM_FI_{name}" for name in names))


def _counter(unit: str, dcgm: int | None, *names: str) -> Field:
    return Field(Kind.COUNTER, unit, 0.0, inf, dcgm, None, tuple(f"DCGM_FI_{name}" for name in names))


FIELDS: Mapping[str, Field] = {
    # the claim: nvmlDeviceGetUtilizationRates
    "busy": _ratio(203, None, "DEV_GPU_UTIL", "DEV_GPU_UTIL_RATIO"),
    "memory_busy": _ratio(204, None, "DEV_MEM_COPY_UTIL", "DEV_MEMORY_UTIL_RATIO"),
    # the measurement
    "graphics_engine": _ratio(1001, 1, "PROF_GR_ENGINE_ACTIVE", "PROF_GR_ENGINE_UTIL_RATIO"),
    "sm": _ratio(1002, 2, "PROF_SM_ACTIVE", "PROF_SM_UTIL_RATIO"),
    "sm_occupancy": _ratio(1003, 3, "PROF_SM_OCCUPANCY", "PROF_SM_OCCUPANCY_RATIO"),
    "tensor": _ratio(1004, 5, "PROF_PIPE_TENSOR_ACTIVE", "PROF_TENSOR_UTIL_RATIO"),
    "dram": _ratio(1005, 10, "PROF_DRAM_ACTIVE", "PROF_DRAM_UTIL_RATIO"),
    "fp64": _ratio(1006, 11, "PROF_PIPE_FP64_ACTIVE", "PROF_FP64_UTIL_RATIO"),
    "fp32": _ratio(1007, 12, "PROF_PIPE_FP32_ACTIVE", "PROF_FP32_UTIL_RATIO"),
    "fp16": _ratio(1008, 13, "PROF_PIPE_FP16_ACTIVE", "PROF_FP16_UTIL_RATIO"),
    "integer": _ratio(1016, 4, "PROF_PIPE_INT_ACTIVE", "PROF_INT_UTIL_RATIO"),
    "tensor_imma": _ratio(1013, 9, "PROF_PIPE_TENSOR_IMMA_ACTIVE", "PROF_IMMA_UTIL_RATIO"),
    "tensor_hmma": _ratio(1014, 7, "PROF_PIPE_TENSOR_HMMA_ACTIVE", "PROF_HMMA_UTIL_RATIO"),
    "tensor_dfma": _ratio(1015, 6, "PROF_PIPE_TENSOR_DFMA_ACTIVE", "PROF_DFMA_UTIL_RATIO"),
    "tensor_dmma": _ratio(None, 8),
    # links; ranges are far above any real link and below any blank (PCIe 7 x16: 242e9, NVLink 6: 1.8e12 per direction)
    "pcie_transmit": _rate(1e12, 1009, 20, "PROF_PCIE_TX_BYTES", "PROF_PCIE_TX_BYTES_PER_SECOND"),
    "pcie_receive": _rate(1e12, 1010, 21, "PROF_PCIE_RX_BYTES", "PROF_PCIE_RX_BYTES_PER_SECOND"),
    "nvlink_transmit": _rate(1e13, 1011, 61, "PROF_NVLINK_TX_BYTES", "PROF_NVLINK_TX_BYTES_PER_SECOND"),
    "nvlink_receive": _rate(1e13, 1012, 60, "PROF_NVLINK_RX_BYTES", "PROF_NVLINK_RX_BYTES_PER_SECOND"),
    # device context
    "power": _gauge("watts", 1e5, 155, "DEV_POWER_USAGE", "DEV_BOARD_POWER_WATTS"),
    "power_limit": _gauge("watts", 1e5, 160, "DEV_POWER_MGMT_LIMIT", "DEV_BOARD_POWER_LIMIT_REQUESTED_WATTS"),
    "energy": _counter("joules", 156, "DEV_TOTAL_ENERGY_CONSUMPTION", "DEV_GPU_ENERGY_JOULES_TOTAL"),
    "temperature": _gauge("celsius", 150.0, 150, "DEV_GPU_TEMP", "DEV_GPU_TEMP_CELSIUS", low=-50.0),
    "memory_temperature": _gauge("celsius", 150.0, 140, "DEV_MEMORY_TEMP", "DEV_MEMORY_TEMP_CELSIUS", low=-50.0),
    "sm_clock": _gauge("hertz", 1e10, 100, "DEV_SM_CLOCK", "DEV_SM_CLOCK_HERTZ"),
    "memory_clock": _gauge("hertz", 1e11, 101, "DEV_MEM_CLOCK", "DEV_MEMORY_CLOCK_HERTZ"),
    "memory_total": _gauge("bytes", 1e14, 250, "DEV_FB_TOTAL", "DEV_FB_CAPACITY_BYTES"),
    "memory_free": _gauge("bytes", 1e14, 251, "DEV_FB_FREE", "DEV_FB_FREE_BYTES"),
    "memory_used": _gauge("bytes", 1e14, 252, "DEV_FB_USED", "DEV_FB_USED_BYTES"),
    "memory_reserved": _gauge("bytes", 1e14, 253, "DEV_FB_RESERVED", "DEV_FB_RESERVED_BYTES"),
    "clock_event": Field(
        Kind.ACTIVE,
        "seconds",
        0.0,
        1.0,
        112,
        None,
        ("DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", "DCGM_FI_DEV_CLOCKS_EVENT_REASONS"),
    ),
    "xid": Field(Kind.EVENT, "", 0.0, 100_000.0, 230, None, ("DCGM_FI_DEV_XID_ERRORS", "DCGM_FI_DEV_XID_ERROR")),
    "pcie_replay": _counter("", 202, "DEV_PCIE_REPLAY_COUNTER", "DEV_PCIE_REPLAY_TOTAL"),
    "ecc_corrected": _counter("", 312, "DEV_ECC_SBE_AGG_TOTAL"),
    "ecc_uncorrected": _counter("", 313, "DEV_ECC_DBE_AGG_TOTAL"),
    "retired_pages": _gauge("", 1e6, None),
    "remapped_rows_corrected": _gauge("", 1e6, 394, "DEV_CORRECTABLE_REMAPPED_ROWS", "DEV_ROW_REMAP_CORRECTABLE_TOTAL"),
    "remapped_rows_uncorrected": _gauge(
        "", 1e6, 393, "DEV_UNCORRECTABLE_REMAPPED_ROWS", "DEV_ROW_REMAP_UNCORRECTABLE_TOTAL"
    ),
    "remap_failed": _gauge("", 1.0, 395, "DEV_ROW_REMAP_FAILURE", "DEV_ROW_REMAP_FAILED"),
    "pcie_link_generation": _gauge("", 10.0, 237, "DEV_PCIE_LINK_GEN"),
    "pcie_link_generation_max": _gauge("", 10.0, 235, "DEV_PCIE_MAX_LINK_GEN"),
    "pcie_link_width": _gauge("", 32.0, 238, "DEV_PCIE_LINK_WIDTH"),
    "pcie_link_width_max": _gauge("", 32.0, 236, "DEV_PCIE_MAX_LINK_WIDTH"),
    "nvlink_links_up": _gauge("", 72.0, None),
    "processes": _gauge("", 1e6, None),  # processes that hold a context on the GPU
    # what only traces tell
    "collective": _ratio(None, None),  # a collective's kernel ran
    "input_wait": _ratio(None, None),  # the main thread waited for the data loader
    # the host's part, where a source knows it by itself (a trace, the simulator); else exporter.host reads it
    "host_main_thread": _gauge("ratio", 1.0, None),  # share of a core that the busiest holder's main thread takes
    "host_pressure": _gauge("ratio", 1.0, None),  # share of the time in which tasks waited for CPU or storage
}

# of the parts around the GPUs (model.Part)
PART_FIELDS: Mapping[str, Field] = {
    "nvswitch_temperature": _gauge("celsius", 150.0, 858, low=-50.0),
    "nvswitch_power": _gauge("watts", 1e4, None),  # by rail: 705 to 707
    "nvswitch_fatal_sxid": Field(Kind.EVENT, "", 0.0, 1e6, 856),
    "nvswitch_non_fatal_sxid": Field(Kind.EVENT, "", 0.0, 1e6, 857),
    "cpu_utilization": _ratio(1100, None),
    "cpu_temperature": _gauge("celsius", 150.0, 1110, low=-50.0),
    "cpu_power": _gauge("watts", 1e4, 1130),
    "cpu_power_limit": _gauge("watts", 1e4, 1131),
    "cpu_module_power": _gauge("watts", 1e5, 1133),
}

# nvml.h nvmlClocksEventReason*: bit -> label value
CLOCK_EVENTS: Mapping[int, str] = {
    0x1: "idle",
    0x2: "application_clocks",
    0x4: "power_cap",
    0x8: "hw_slowdown",
    0x10: "sync_boost",
    0x20: "sw_thermal",
    0x40: "hw_thermal",
    0x80: "power_brake",
    0x100: "display_clocks",
}

# dcgm_structs.h: a value at or above these is a blank, +1 not found, +2 not supported, +3 not permitted
INT32_BLANK = 0x7FFFFFF0
INT64_BLANK = 0x7FFFFFFFFFFFFFF0
FP64_BLANK = 140737488355328.0
