"""The catalogue of workloads by name."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType

from exporter.sources.simulated import plays
from exporter.sources.simulated.plays import Play


@dataclass(frozen=True, slots=True)
class SimulatedInstance:
    """One MIG GPU instance of a board, and what runs on it."""

    gpu_instance: int
    profile: str
    share: float  # of the board's SMs
    memory: float  # of the board's memory
    play: Play


@dataclass(frozen=True, slots=True)
class SimulatedWorkload:
    """What one board does: as a whole, or cut into ``slices``."""

    name: str
    description: str  # one line
    play: Play = plays.unused
    slices: Sequence[SimulatedInstance] = ()


_SLICES = (  # H100 80GB: 132 SMs, 60 + 32 + 16 + 16 of them in these instances
    SimulatedInstance(2, "3g.40gb", 60 / 132, 0.5, partial(plays.training, peers=False)),
    SimulatedInstance(3, "2g.20gb", 32 / 132, 0.25, plays.decode),
    SimulatedInstance(9, "1g.10gb", 16 / 132, 0.125, partial(plays.tiny_kernels, sms=16)),
    SimulatedInstance(10, "1g.10gb", 16 / 132, 0.125, plays.allocated),
)
_ALL = (
    SimulatedWorkload(
        "training-healthy", "a transformer trains: tensor cores busy, a checkpoint a minute", plays.training
    ),
    SimulatedWorkload("input-starved", "each second 800 ms of loading, 200 ms of kernels", plays.input_starved),
    SimulatedWorkload(
        "tiny-kernels", "one block for 900 ms of each second: claimed 90 %, SM active below 1 %", plays.tiny_kernels
    ),
    SimulatedWorkload(
        "communication-bound", "collectives spin on few SMs, NVLink is busy, little else", plays.communication_bound
    ),
    SimulatedWorkload("memory-bound", "LLM decode: DRAM at its limit, tensor cores nearly idle", plays.decode),
    SimulatedWorkload(
        "launch-bound", "kernels of microseconds with gaps between: busy, but SMs mostly empty", plays.launch_bound
    ),
    SimulatedWorkload(
        "hang", "a collective waits for a lost peer: claimed 100 % at idle power, nothing moves", plays.hang
    ),
    SimulatedWorkload("idle-allocated", "a process holds memory, nothing runs", plays.allocated),
    SimulatedWorkload(
        "power-throttled",
        "matrix products under a 300 W limit: clocks held down by the power cap",
        plays.power_throttled,
    ),
    SimulatedWorkload(
        "mig-mixed", "a board cut into four instances: training, decode, tiny kernels, idle", slices=_SLICES
    ),
    SimulatedWorkload("flapping", "busy and idle by turns of some seconds", plays.flapping),
    SimulatedWorkload("idle", "no process, nothing runs", plays.unused),
)
WORKLOADS: Mapping[str, SimulatedWorkload] = MappingProxyType({workload.name: workload for workload in _ALL})


def named(name: str) -> SimulatedWorkload:
    """The workload of that name; ValueError with the nearest and all names when there is none."""
    if name in WORKLOADS:
        return WORKLOADS[name]
    close = difflib.get_close_matches(name, WORKLOADS, n=1)
    hint = f"; did you mean {close[0]}?" if close else ""
    raise ValueError(f"no such workload: {name!r}{hint} (there are: {', '.join(WORKLOADS)})")
