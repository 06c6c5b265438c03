"""Instances of MIG boards against their slices."""

from __future__ import annotations

import pytest

from exporter.hardware import mig
from exporter.hardware.peaks import Peaks, load


def board(name: str) -> Peaks:
    found = load().find(name)
    assert found is not None
    return found


A100_40, A100_80, H100 = (
    board(name) for name in ("NVIDIA A100-SXM4-40GB", "NVIDIA A100-SXM4-80GB", "NVIDIA H100 80GB HBM3")
)


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("1g.5gb", mig.MigProfile(1, 1, 5)),
        ("MIG 3g.40gb", mig.MigProfile(3, 3, 40)),
        ("1g.10gb+me", mig.MigProfile(1, 1, 10)),
        ("1g.24gb+me.all", mig.MigProfile(1, 1, 24)),
        ("1g.24gb-me", mig.MigProfile(1, 1, 24)),
        ("2c.3g.20gb", mig.MigProfile(3, 2, 20)),
        ("7g.141gb", mig.MigProfile(7, 7, 141)),
        ("4c.3g.20gb", None),
        ("0g.5gb", None),
        ("3g", None),
        ("", None),
        ("1g.5gb extra", None),
    ],
)
def test_profile_names(text: str, parsed: mig.MigProfile | None) -> None:
    assert mig.parse(text) == parsed


@pytest.mark.parametrize(
    ("on", "profile", "compute", "memory"),
    [
        (A100_40, "1g.5gb", 14 / 108, 1 / 8),
        (A100_40, "1g.10gb", 14 / 108, 2 / 8),  # the same name ...
        (A100_80, "1g.10gb", 14 / 108, 1 / 8),  # ... is half as much of another board
        (A100_80, "7g.80gb", 98 / 108, 1.0),
        (H100, "3g.40gb", 60 / 132, 4 / 8),  # more than three times a 1g
        (H100, "1g.10gb+me", 16 / 132, 1 / 8),
        (H100, "2c.3g.40gb", 40 / 132, 4 / 8),
        (board("NVIDIA H100 PCIe"), "2g.20gb", 2 / 7, 2 / 8),  # SMs not known: NVIDIA's fraction of slices
        (board("NVIDIA H100 NVL"), "4g.47gb", 4 / 7, 4 / 8),  # 47 GB of 94
        (board("NVIDIA A30"), "2g.12gb", 0.5, 0.5),
        (board("NVIDIA H200"), "3g.71gb", 60 / 132, 0.5),
    ],
)
def test_an_instance_has_the_share_of_its_slices(on: Peaks, profile: str, compute: float, memory: float) -> None:
    scaled = mig.instance(on, profile)
    assert scaled.flops["fp16"] == pytest.approx(on.flops["fp16"] * compute)
    if on.dram_bytes_per_second is not None:
        assert scaled.dram_bytes_per_second == pytest.approx(on.dram_bytes_per_second * memory)
    assert on.memory_gigabytes is not None
    assert scaled.memory_gigabytes == pytest.approx(on.memory_gigabytes * memory)
    assert scaled.reference_clock_hertz == on.reference_clock_hertz


def test_the_drivers_count_of_multiprocessors_beats_the_table() -> None:
    scaled = mig.instance(H100, "3g.40gb", multiprocessors=66)
    assert scaled.multiprocessors == 66
    assert scaled.flops["fp16"] == pytest.approx(H100.flops["fp16"] / 2)


def test_what_belongs_to_the_board_is_absent_on_an_instance() -> None:
    scaled = mig.instance(H100, "1g.10gb")
    assert (scaled.power_watts, scaled.nvlink_bytes_per_second, scaled.pcie_generation) == (None, None, None)
    assert scaled.attainable == {"tensor": H100.attainable["tensor"]}


@pytest.mark.parametrize("profile", ["", "who knows", "1g.7gb"])
def test_a_profile_that_does_not_fit_gives_no_bandwidth(profile: str) -> None:
    assert mig.instance(H100, profile).dram_bytes_per_second is None


def test_a_board_that_is_not_dealt_out_gives_an_instance_no_figure() -> None:
    scaled = mig.instance(board("Tesla T4"), "1g.5gb")
    assert (scaled.flops, scaled.dram_bytes_per_second) == ({}, None)


def test_all_small_instances_together_are_never_more_than_the_board() -> None:
    for peaks in load().models:
        if peaks.mig and peaks.memory_gigabytes:
            smallest = f"1g.{round(peaks.memory_gigabytes / peaks.mig.memory_slices)}gb"
            scaled = mig.instance(peaks, smallest)
            for dtype, peak in peaks.flops.items():
                assert scaled.flops[dtype] * peaks.mig.compute_slices <= peak * 1.000001, peaks.model
            if peaks.dram_bytes_per_second:
                assert scaled.dram_bytes_per_second == peaks.dram_bytes_per_second / peaks.mig.memory_slices


@pytest.mark.parametrize(
    ("on", "profile", "share"),
    [
        (H100, "1g.10gb", 1 / 7),
        (H100, "1g.20gb", 1 / 7),  # twice the memory, the same slices
        (H100, "7g.80gb", 1.0),
        (H100, "2c.3g.40gb", 3 / 7),  # the other slice of it is nobody else's
        (board("NVIDIA A30"), "2g.12gb", 2 / 4),
        (board("NVIDIA A30"), "7g.12gb", None),  # more than there is
        (board("Tesla T4"), "1g.5gb", None),
        (H100, "", None),
    ],
)
def test_slices_that_an_instance_takes_away(on: Peaks, profile: str, share: float | None) -> None:
    assert mig.slice_share(on, profile) == (None if share is None else pytest.approx(share))
