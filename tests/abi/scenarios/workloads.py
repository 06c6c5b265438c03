"""What a GPU does: the claim, the measurement and the power that belong together."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ..nvml.scenario import Gpu, Value
from .models import GPM_IDLE


@dataclass(frozen=True)
class Workload:
    """In percent and MiB/s, as NVML has them; power as a share of the limit."""

    busy: float
    memory_busy: float = 0.0
    power_share: float = 0.1
    sm_clock: float | None = None
    gpm: Mapping[int, Value] = field(default_factory=dict)


IDLE = Workload(0.0)

GEMM = Workload(
    100.0,
    40.0,
    0.95,
    gpm={1: 99.5, 2: 98.0, 3: 12.5, 5: 82.0, 7: 82.0, 10: 31.0, 12: 1.5, 4: 6.0, 20: 3.0, 21: 5.0},
)
"""A large matrix product: the tensor cores work."""

COPY_BOUND = Workload(100.0, 95.0, 0.55, gpm={1: 99.8, 2: 96.0, 3: 60.0, 10: 91.0, 12: 8.0, 4: 5.0, 20: 1.0, 21: 2.0})
"""Streams memory: DRAM is the limit."""

ONE_BLOCK = Workload(100.0, 0.0, 0.17, gpm={1: 99.9, 2: 0.75, 3: 0.4, 12: 0.4})
"""One block spinning on one SM: claimed fully busy, nearly empty."""

LAUNCH_GAPS = Workload(93.0, 5.0, 0.22, gpm={1: 61.0, 2: 14.0, 3: 4.0, 5: 1.0, 10: 3.0, 12: 2.5, 20: 40.0, 21: 60.0})

HOST_TO_DEVICE = Workload(4.0, 3.0, 0.16, gpm={1: 2.0, 2: 1.0, 3: 0.5, 10: 1.5, 20: 200.0, 21: 50_000.0})

STALLED_COLLECTIVE = Workload(100.0, 0.0, 0.18, gpm={1: 99.9, 2: 15.0, 3: 3.0})
"""A collective that waits for a lost peer: kernels resident, nothing moves."""


def running(gpu: Gpu, workload: Workload) -> Gpu:
    """The same GPU at work from the start."""
    limit = gpu.power.limit_mw or 100_000.0
    draw = limit * workload.power_share
    average = None if gpu.power.average_mw is None else draw
    clock = gpu.clocks_max.sm if workload.sm_clock is None else workload.sm_clock
    return replace(
        gpu,
        utilization=workload.busy,
        memory_utilization=workload.memory_busy,
        power=replace(gpu.power, draw_mw=draw, average_mw=average),
        clocks=replace(gpu.clocks, sm=clock, graphics=clock),
        clock_reasons=1.0 if workload.busy == 0.0 else 0.0,
        gpm=None if gpu.gpm is None else {**GPM_IDLE, **workload.gpm},
    )
