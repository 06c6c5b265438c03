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
class Slice:
    """One MIG GPU instance of a board, and what runs on it."""

    gpu_instance: int
    profile: str
    share: float  # of the board's SMs
    memory: float  # of the board's memory
    play: Play


@dataclass(frozen=True, slots=True)
class Workload:
    """What one board does: as a whole, or cut into ``slices``."""

    name: str
    description: str  # one line
    play: Play = plays.unused
    slices: Sequence[Slice] = ()


_SLICES = (  # H100 80GB: 132 SMs, 60 + 32 + 16 + 16 of them in these instances
    Slice(2, "3g.40gb", 60 / 132, 0.5, partial(plays.training, peers=False)),
    Slice(3, "2g.20gb", 32 / 132, 0.25, plays.decode),
    Slice(9, "1g.10gb", 16 / 132, 0.125, partial(plays.tiny_kernels, sms=16)),
    Slice(10, "1g.10gb", 16 / 132, 0.125, plays.allocated),
)
_ALL = (
    Workload("training-healthy", "a transformer trains: tensor cores busy, a checkpoint a minute", plays.training),
    Workload("input-starved", "each second 800 ms of loading, 200 ms of kernels", plays.input_starved),
    Workload(
        "tiny-kernels", "one block for 900 ms of each second: claimed 90 %, SM active below 1 %", plays.tiny_kernels
    ),
    Workload(
        "communication-bound", "collectives spin on few SMs, NVLink is busy, little else", plays.communication_bound
    ),
    Workload("memory-bound", "LLM decode: DRAM at its limit, tensor cores nearly idle", plays.decode),
    Workload(
        "launch-bound", "kernels of microseconds with gaps between: busy, but SMs mostly empty", plays.launch_bound
    ),
    Workload("hang", "a collective waits for a lost peer: claimed 100 % at idle power, nothing moves", plays.hang),
    Workload("idle-allocated", "a process holds memory, nothing runs", plays.allocated),
    Workload(
        "power-throttled",
        "matrix products under a 300 W limit: clocks held down by the power cap",
        plays.power_throttled,
    ),
    Workload("mig-mixed", "a board cut into four instances: training, decode, tiny kernels, idle", slices=_SLICES),
    Workload("flapping", "busy and idle by turns of some seconds", plays.flapping),
    Workload("idle", "no process, nothing runs", plays.unused),
)
WORKLOADS: Mapping[str, Workload] = MappingProxyType({workload.name: workload for workload in _ALL})


def named(name: str) -> Workload:
    """The workload of that name; ValueError with the nearest and all names when there is none."""
    if name in WORKLOADS:
        return WORKLOADS[name]
    close = difflib.get_close_matches(name, WORKLOADS, n=1)
    hint = f"; did you mean {close[0]}?" if close else ""
    raise ValueError(f"no such workload: {name!r}{hint} (there are: {', '.join(WORKLOADS)})")
