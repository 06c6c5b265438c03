"""Zeros that are hard to believe."""

from __future__ import annotations

import pytest

from exporter.core.suspicion import PATIENCE, ZeroWatch

SILENT = {"pcie_transmit": 0.0, "pcie_receive": 0.0}
BOTH = {"pcie_transmit", "pcie_receive"}


def fed(seconds: int, means: dict[str, float], model: str = "NVIDIA L40S", step: float = 1.0) -> ZeroWatch:
    watch = ZeroWatch()
    for index in range(round(seconds / step) + 1):
        watch.feed(index * step, means, model)
    return watch


@pytest.mark.parametrize("step", [0.1, 1.0, 10.0])
def test_minutes_of_kernels_without_a_byte(step: float) -> None:
    assert fed(int(PATIENCE) + 20, SILENT | {"sm": 0.9}, step=step).suspects == BOTH
    assert not fed(int(PATIENCE) - 20, SILENT | {"sm": 0.9}, step=step).suspects


@pytest.mark.parametrize(
    "means",
    [
        SILENT | {"sm": 0.0},  # idle
        SILENT,  # nothing says that kernels run
        {"pcie_transmit": 0.0, "sm": 0.9},  # one direction is not known
        {"pcie_transmit": 0.0, "pcie_receive": 17.0, "sm": 0.9},
        {"nvlink_transmit": 0.0, "nvlink_receive": 0.0, "sm": 0.9},  # most jobs do not use it
    ],
)
def test_what_is_not_suspect(means: dict[str, float]) -> None:
    assert not fed(2 * int(PATIENCE), means).suspects


def test_a_gpu_beside_its_cpu_has_another_way() -> None:
    assert not fed(2 * int(PATIENCE), SILENT | {"sm": 0.9}, "NVIDIA GH200 480GB").suspects


def test_idle_time_neither_adds_nor_acquits_and_one_byte_does() -> None:
    watch, now = ZeroWatch(), 0.0
    for sm in (0.9, 0.0, 0.9):
        for _ in range(int(PATIENCE * 0.6)):
            now += 1.0
            watch.feed(now, SILENT | {"sm": sm}, "")
    assert watch.suspects == BOTH
    watch.feed(now + 1.0, {"pcie_transmit": 1.0, "pcie_receive": 0.0, "sm": 0.9}, "")
    assert not watch.suspects
    watch.feed(now + 2.0, SILENT | {"sm": 0.9}, "")
    assert not watch.suspects


def test_an_outage_is_not_time_that_was_seen() -> None:
    watch = ZeroWatch()
    for end in (0.0, 1.0, 10_000.0, 10_001.0):
        watch.feed(end, SILENT | {"sm": 0.9}, "")
    assert not watch.suspects
