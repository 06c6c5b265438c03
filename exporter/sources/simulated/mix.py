"""How a run of similar kernels uses the GPU: how busy it keeps each channel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from random import Random

from exporter.sources.timeline import Kernel

NVLINK = 450e9  # bytes per second and direction, H100 SXM: 18 links of 25 GB/s
ENGINE = 0.998  # graphics engine while a kernel runs: nearly the driver's busy
SM_CEILING = 0.985  # even a perfect kernel leaves SMs empty at its start and end


@dataclass(frozen=True, slots=True)
class Mix:
    """Ratios 0..1 while it runs, as DCGM defines them; ``nvlink``: share of the links' peak, each direction."""

    sm: float
    occupancy: float
    tensor: float = 0.0
    fp64: float = 0.0
    fp32: float = 0.0
    fp16: float = 0.0
    integer: float = 0.0
    dram: float = 0.0
    nvlink: float = 0.0

    def varied(self, random: Random, spread: float = 0.05) -> Mix:
        """The same, each value up to ``spread`` more or less of itself: no two iterations are alike."""
        drawn = {f.name: getattr(self, f.name) * random.uniform(1 - spread, 1 + spread) for f in fields(self)}
        sm = min(drawn["sm"], SM_CEILING)
        return replace(
            self, **{name: min(value, 1.0 if name in ("dram", "nvlink") else sm) for name, value in drawn.items()}
        )

    def kernel(self, start: float, end: float, *, collective: bool = False) -> Kernel:
        """It runs from ``start`` to ``end``. The kernel represents a run of similar kernels, back to back."""
        return Kernel(start, end, self.sm, self.occupancy, collective, self._pipes())

    def _pipes(self) -> Mapping[str, float]:
        return {
            "graphics_engine": max(ENGINE, self.sm),
            "memory_busy": min(1.0, 1.1 * self.dram),
            "tensor": self.tensor,
            "tensor_hmma": self.tensor,
            "tensor_imma": 0.0,
            "tensor_dfma": 0.0,
            "fp64": self.fp64,
            "fp32": self.fp32,
            "fp16": self.fp16,
            "integer": self.integer,
            "dram": self.dram,
            "nvlink_transmit": self.nvlink * NVLINK,
            "nvlink_receive": self.nvlink * NVLINK,
        }


NOTHING = Mix(0.0, 0.0).kernel(0.0, 0.0)
"""A kernel of no length: it makes every channel known, so that an idle GPU reports 0 rather than nothing."""

GEMM = Mix(sm=0.97, occupancy=0.13, tensor=0.80, fp32=0.02, integer=0.06, dram=0.31)
ATTENTION = Mix(sm=0.93, occupancy=0.24, tensor=0.47, fp32=0.21, integer=0.12, dram=0.29)
ELEMENTWISE = Mix(sm=0.95, occupancy=0.62, fp32=0.17, fp16=0.03, integer=0.10, dram=0.82)
CONVOLUTION = Mix(sm=0.90, occupancy=0.20, tensor=0.52, fp32=0.08, integer=0.09, dram=0.45)
ALL_REDUCE = Mix(sm=0.12, occupancy=0.03, fp32=0.005, integer=0.01, dram=0.07, nvlink=0.62)
DECODE = Mix(sm=0.88, occupancy=0.34, tensor=0.06, fp32=0.11, fp16=0.02, integer=0.14, dram=0.88)
SMALL_KERNELS = Mix(sm=0.19, occupancy=0.05, tensor=0.01, fp32=0.03, integer=0.03, dram=0.05)
