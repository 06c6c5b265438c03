"""From a kernel's launch to the share of SMs that hold one of its warps, and to SM occupancy.

Blocks are dealt to SMs evenly and take equally long: with ``resident`` blocks at once on an SM, a launch of ``blocks``
runs in waves of ``resident * sms``; all but the last fill every SM, the last one ``rest / sms`` of them. The share of a
launch is the mean over its waves. It is an estimate: real blocks differ in length, and the driver may leave SMs out.
Up to one block an SM, ``resident`` does not matter. Beyond that, where it is not known, the tail is not either: the
share is then that of one wave, an upper bound, and occupancy is None.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

REGISTERS_GRAIN = 256  # registers are dealt to warps in this unit (CUDA occupancy calculator, compute 3.5 and later)
RESERVED_SHARED = 1024  # bytes of shared memory that each block takes besides its own, from compute capability 8.0 on


@dataclass(frozen=True, slots=True)
class SmLimits:
    """What one SM holds. None: not known."""

    warps: int | None = None
    blocks: int | None = None
    registers: int | None = None
    shared: int | None = None  # bytes
    reserved: int = 0  # bytes of shared memory that each block takes besides its own


def reserved_shared(major: int | None) -> int:
    """Bytes of shared memory that each block takes besides its own. ``major``: of the compute capability."""
    return 0 if major is not None and major < 8 else RESERVED_SHARED


def resident_blocks(limits: SmLimits, threads: int, registers: int, shared: int) -> int | None:
    """Blocks of a kernel that fit on an SM at once, ``shared`` in bytes a block.

    None unless the limits of warps, registers and shared memory are all known: each can be the one that counts. The
    limit of blocks counts for tiny blocks only; not every trace has it.
    """
    if not (limits.warps and limits.registers and limits.shared):
        return None
    warps = math.ceil(threads / 32)
    fits = [limits.warps // warps]
    if limits.blocks:
        fits.append(limits.blocks)
    if registers:
        grain = math.ceil(registers * 32 / REGISTERS_GRAIN) * REGISTERS_GRAIN
        fits.append(limits.registers // (grain * warps))
    if shared:
        fits.append(limits.shared // (shared + limits.reserved))
    return max(1, min(fits))  # it ran: one fits


def sm_share(blocks_per_sm: float, resident: float | None) -> float:
    """Share of SMs with a resident warp, averaged over the launch. ``blocks_per_sm``: blocks of the grid over SMs."""
    if resident is None or blocks_per_sm <= resident:
        return min(1.0, blocks_per_sm)
    full, rest = divmod(blocks_per_sm, resident)
    return full / (full + 1) + min(1.0, rest) / (full + 1) if rest > 1e-6 else 1.0


def occupancy(blocks_per_sm: float, resident: float | None, warps_per_block: int, max_warps: int) -> float | None:
    """Warp slots in use, averaged over all SMs and the launch: DCGM's SM occupancy. Not to be multiplied by sm."""
    slots = warps_per_block / max_warps
    if blocks_per_sm <= max(1.0, resident or 0.0):
        return min(1.0, blocks_per_sm * slots)
    if resident is None:
        return None
    full, rest = divmod(blocks_per_sm, resident)
    waves = full + 1 if rest > 1e-6 else full
    return min(1.0, (full * resident + rest) / waves * slots)
