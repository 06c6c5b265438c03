"""From launch geometry to the share of SMs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.sources.replay.launch import SmLimits, occupancy, reserved_shared, resident_blocks, sm_share

A100 = SmLimits(warps=64, blocks=32, registers=65536, shared=167936, reserved=reserved_shared(8))


@pytest.mark.parametrize(
    ("blocks", "sms", "resident", "share"),
    [
        (2, 108, 4, 2 / 108),  # fewer blocks than SMs
        (108, 108, 4, 1.0),
        (4 * 108, 108, 4, 1.0),  # one full wave
        (4 * 108 + 54, 108, 4, (1 + 0.5) / 2),  # and a tail on half of the SMs
        (8 * 108 + 4 * 108 - 1, 108, 4, 1.0),  # a tail that still covers every SM
        (1, 132, 1, 1 / 132),
    ],
)
def test_shares_with_tail_waves(blocks: int, sms: int, resident: int, share: float) -> None:
    assert sm_share(blocks / sms, resident) == pytest.approx(share)


@given(st.integers(1, 100_000), st.integers(1, 200), st.integers(1, 32))
def test_a_share_is_one_at_most_and_never_zero(blocks: int, sms: int, resident: int) -> None:
    assert 0.0 < sm_share(blocks / sms, resident) <= 1.0
    filled = occupancy(blocks / sms, resident, 2, 64)
    assert filled is not None
    assert 0.0 < filled <= 1.0


def test_resident_blocks_by_what_runs_out_first() -> None:
    assert resident_blocks(A100, 1024, 32, 0) == 2  # warps
    assert resident_blocks(A100, 32, 16, 0) == 32  # block slots
    assert resident_blocks(A100, 128, 255, 0) == 2  # registers: 255 -> 8192 a warp, 32768 a block
    assert resident_blocks(A100, 128, 32, 48 * 1024) == 3  # shared memory, 1 KiB of each block is reserved
    assert resident_blocks(A100, 128, 222, 81920) == 2  # as libkineto's occupancy has it for an A100's GEMM
    assert resident_blocks(A100, 1024, 64, 200_000) == 1  # it ran, whatever is computed


@pytest.mark.parametrize(
    "known", [SmLimits(), SmLimits(warps=64), SmLimits(64, 32, 65536), SmLimits(64, 32, None, 167936)]
)
def test_a_limit_that_is_not_known_can_be_the_one_that_counts(known: SmLimits) -> None:
    assert resident_blocks(known, 128, 32, 0) is None


def test_blocks_reserve_shared_memory_since_ampere() -> None:
    turing = SmLimits(warps=32, registers=65536, shared=65536, reserved=reserved_shared(7))
    assert resident_blocks(turing, 256, 32, 16384) == 4
    ampere = SmLimits(warps=48, registers=65536, shared=65536, reserved=reserved_shared(8))
    assert resident_blocks(ampere, 256, 32, 16384) == 3
    assert reserved_shared(None) == reserved_shared(8)


def test_not_knowing_what_is_resident_matters_beyond_a_block_an_sm_only() -> None:
    assert sm_share(0.5, None) == 0.5
    assert occupancy(0.5, None, 16, 64) == 0.5 * 16 / 64
    assert sm_share(4.5, None) == 1.0
    assert occupancy(4.5, None, 16, 64) is None


def test_occupancy_is_averaged_over_all_sms() -> None:
    assert occupancy(2 / 108, 4, 16, 64) == pytest.approx(2 / 108 * 16 / 64)
    assert occupancy(4.0, 4, 16, 64) == 1.0
    assert occupancy(6.0, 4, 8, 64) == (4 + 2) / 2 * 8 / 64  # a full wave and half of one
