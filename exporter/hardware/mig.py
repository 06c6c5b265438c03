"""The peaks of one MIG instance: the board's, scaled by the slices that the instance has.

A profile such as ``3g.40gb`` says 3 compute slices and 40 GB; how many memory slices that is depends on the board
(1g.10gb is two slices of eight on an A100 40 GB, one on an A100 80 GB). Slices of a board and SMs by profile: NVIDIA
MIG User Guide and ``nvidia-smi mig -lgip``; compute slices are not equal shares of the SMs (H100: 3g has 60, 1g 16).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from exporter.hardware.peaks import Peaks

# "MIG 1g.10gb+me", "1g.24gb+me.all", "2c.3g.20gb" (a compute instance with 2 of the 3 slices)
_PROFILE = re.compile(r"(?:MIG )?(?:(?P<c>\d+)c\.)?(?P<g>\d+)g\.(?P<gb>\d+)gb(?:[+-][a-z.+-]+)?")
_TOLERANCE = 0.1  # profile names round: 1g.12gb on 94 GB; B300's 7g.269gb is of 288 GB


@dataclass(frozen=True, slots=True)
class MigProfile:
    """What the name of a profile contains."""

    slices: int  # of the GPU instance
    compute: int  # of the compute instance in it; the same unless the name begins with "Nc."
    gigabytes: int

    @property
    def name(self) -> str:
        """The GPU instance's profile without attributes that change no peak (+me, +gfx)."""
        return f"{self.slices}g.{self.gigabytes}gb"


def parse(text: str) -> MigProfile | None:
    """The profile of a name; None for what is not one."""
    match = _PROFILE.fullmatch(text.strip())
    if match is None:
        return None
    slices = int(match["g"])
    compute = int(match["c"] or slices)
    return MigProfile(slices, compute, int(match["gb"])) if 1 <= compute <= slices else None


def instance(board: Peaks, profile: str, multiprocessors: int | None = None) -> Peaks:
    """The peaks of an instance of ``board``.

    ``multiprocessors``: SMs of the instance as the driver reports them, which beat the table. Without both, the
    share is that of the compute slices. What cannot be scaled is absent: power and links belong to the board.
    """
    parsed = parse(profile)
    compute = _compute_share(board, parsed, multiprocessors)
    memory = _memory_share(board, parsed)
    return replace(
        board,
        multiprocessors=multiprocessors or _table_count(board, parsed),
        flops={} if compute is None else {dtype: peak * compute for dtype, peak in board.flops.items()},
        dram_bytes_per_second=_times(board.dram_bytes_per_second, memory),
        memory_gigabytes=_times(board.memory_gigabytes, memory),
        nvlink_bytes_per_second=None,
        pcie_generation=None,
        pcie_lanes=None,
        power_watts=None,
        mig=None,
        attainable={unit: ratio for unit, ratio in board.attainable.items() if unit != "nvlink"},
    )


def slice_share(board: Peaks, profile: str) -> float | None:
    """Compute slices of a GPU instance over its board's: what it takes away from others. None: not known."""
    parsed = parse(profile)
    if board.mig is None or parsed is None or parsed.slices > board.mig.compute_slices:
        return None
    return parsed.slices / board.mig.compute_slices


def _table_count(board: Peaks, profile: MigProfile | None) -> int | None:
    known = board.mig.multiprocessors.get(profile.name) if board.mig and profile else None
    if known is None or profile is None:
        return None
    return known * profile.compute // profile.slices


def _compute_share(board: Peaks, profile: MigProfile | None, counted: int | None) -> float | None:
    count = counted or _table_count(board, profile)
    if count is not None and board.multiprocessors is not None:
        return count / board.multiprocessors if count <= board.multiprocessors else None
    if board.mig is None or profile is None or profile.slices > board.mig.compute_slices:
        return None
    return profile.compute / board.mig.compute_slices


def _memory_share(board: Peaks, profile: MigProfile | None) -> float | None:
    if board.mig is None or profile is None or board.memory_gigabytes is None:
        return None
    slices = profile.gigabytes * board.mig.memory_slices / board.memory_gigabytes
    dealt = 1
    while dealt <= board.mig.memory_slices:  # memory is dealt in powers of two (MIG User Guide: 1/8, 2/8, 4/8, full)
        if abs(slices / dealt - 1) <= _TOLERANCE:
            return dealt / board.mig.memory_slices
        dealt *= 2
    return None  # the profile is not of this board


def _times(value: float | None, share: float | None) -> float | None:
    return None if value is None or share is None else value * share
