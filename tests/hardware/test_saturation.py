"""Measurements against peaks, with figures worked out by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.fields import FIELDS
from exporter.hardware import saturation
from exporter.hardware.peaks import Peaks, load
from exporter.hardware.stage import IdleFloor


def board(name: str) -> Peaks:
    found = load().find(name)
    assert found is not None
    return found


H100 = board("NVIDIA H100 80GB HBM3")
VALUES = {
    "tensor": 0.5,
    "sm_clock": 1.83e9,
    "dram": 0.8,
    "pcie_transmit": 31.5e9,
    "pcie_receive": 6.3e9,
    "pcie_link_generation_max": 5.0,
    "pcie_link_width_max": 16.0,
    "nvlink_transmit": 90e9,
    "power": 385.0,
    "power_limit": 700.0,
}


def test_an_h100_at_half_its_tensor_rate() -> None:
    found = saturation.saturation(VALUES, H100, idle_watts=70.0)
    assert found.tensor_peak == pytest.approx(0.5)
    assert found.tensor_flops["fp16"] == pytest.approx(494.7e12)
    assert found.tensor_flops["fp8"] == pytest.approx(989.45e12)
    assert found.dram_bytes_per_second == pytest.approx(2.68e12)
    assert found.pcie == {"transmit": pytest.approx(0.5, rel=1e-3), "receive": pytest.approx(0.1, rel=1e-3)}
    assert found.nvlink == {"transmit": pytest.approx(0.2)}  # receive was not measured: absent
    assert found.power == pytest.approx(0.5)
    assert found.attainable["tensor"] == 0.803


def test_above_the_reference_clock_the_ratio_exceeds_one() -> None:
    assert saturation.tensor_peak_ratio(1.0, 1.98e9, H100) == pytest.approx(1.0820, rel=1e-3)


def test_an_unknown_model_has_only_what_the_driver_itself_says() -> None:
    found = saturation.saturation(VALUES, None, idle_watts=70.0)
    assert (found.tensor_peak, found.tensor_flops, found.dram_bytes_per_second) == (None, {}, None)
    assert (found.nvlink, found.attainable) == ({}, {})
    assert found.pcie["transmit"] == pytest.approx(0.5, rel=1e-3)
    assert found.power == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("generation", "lanes", "gigabytes"),
    [(1, 16, 4.0), (2, 16, 8.0), (3, 16, 15.754), (4, 16, 31.508), (4, 8, 15.754), (5, 16, 63.015), (6, 16, 121.0)],
)
def test_pcie_links(generation: int, lanes: int, gigabytes: float) -> None:
    assert saturation.pcie_bytes_per_second(generation, lanes) == pytest.approx(gigabytes * 1e9, rel=1e-4)


def test_links_that_are_not_known_have_no_capacity() -> None:
    for generation, lanes in ((None, 16), (5, None), (0, 16), (9, 16), (5, 0), (4.5, 16)):
        assert saturation.pcie_bytes_per_second(generation, lanes) is None


def test_the_drivers_link_comes_before_the_models() -> None:
    values = {"pcie_receive": 15.754e9, "pcie_link_generation_max": 3.0, "pcie_link_width_max": 16.0}
    assert saturation.saturation(values, H100, None).pcie["receive"] == pytest.approx(1.0, rel=1e-3)
    del values["pcie_link_generation_max"]
    assert saturation.saturation(values, H100, None).pcie["receive"] == pytest.approx(0.25, rel=1e-3)


@pytest.mark.parametrize(
    ("power", "idle", "limit"), [(None, 70, 700), (300, None, 700), (300, 70, None), (300, 70, 70)]
)
def test_power_without_an_input_is_absent(power: float | None, idle: float | None, limit: float | None) -> None:
    assert saturation.power_ratio(power, idle, limit) is None


@given(st.fixed_dictionaries({}, optional={name: st.floats(0, 1e12) for name in FIELDS}), st.booleans())
def test_nothing_is_said_without_its_input(values: dict[str, float], known: bool) -> None:
    found = saturation.saturation(values, H100 if known else None, None)
    assert (found.tensor_peak is not None) == (known and {"tensor", "sm_clock"} <= values.keys())
    assert (found.dram_bytes_per_second is not None) == (known and "dram" in values)
    assert found.nvlink.keys() == (
        {way for way in ("transmit", "receive") if f"nvlink_{way}" in values} if known else set()
    )
    assert found.power is None


def test_the_floor_is_learnt_only_in_idle_time() -> None:
    floor = IdleFloor()
    assert [floor.feed(watts, 0.9) for watts in (300.0, 310.0, 305.0)] == [None] * 3
    assert [floor.feed(watts, 0.0) for watts in (120.0, 90.0)] == [None, None]
    assert floor.feed(72.0, 0.0) == 90.0
    assert [floor.feed(watts, 0.0) for watts in (71.0, 70.0)] == [72.0, 71.0]
    assert floor.feed(500.0, 1.0) == 71.0


@pytest.mark.parametrize("bad", [None, 0.0, 3.0])
def test_one_bad_reading_is_not_a_floor(bad: float | None) -> None:
    floor = IdleFloor()
    for watts in (70.0, 71.0, 70.0, bad, 70.0, 71.0, 70.0):
        floor.feed(watts, 0.0)
    assert floor.watts == 70.0


def test_a_board_that_never_rests_has_no_floor() -> None:
    floor = IdleFloor()
    for _ in range(100):
        floor.feed(250.0, 0.5)
    floor.feed(70.0, None)  # activity unknown: may not be idle
    assert floor.watts is None
