"""The table of peaks: who is matched, who is not, what users may add, and that the figures hold together."""

from __future__ import annotations

import importlib.util
import math
import sys
from collections.abc import Callable, Iterable, Mapping
from csv import DictReader
from pathlib import Path

import pytest

from exporter import strict_yaml
from exporter.hardware.peaks import PeakTable, load

REPOSITORY = Path(__file__).parents[2]
COLLECTED = REPOSITORY / "dev" / "peaks.csv"


@pytest.fixture(scope="module")
def table() -> PeakTable:
    return load()


@pytest.mark.parametrize(
    ("driver", "model"),
    [
        ("NVIDIA H100 80GB HBM3", "H100-SXM5-80GB"),
        ("NVIDIA H100 PCIe", "H100-PCIe-80GB"),
        ("NVIDIA H100 NVL", "H100-NVL-94GB"),
        ("NVIDIA H200", "H200-SXM-141GB"),
        ("NVIDIA H200 NVL", "H200-NVL-141GB"),
        ("NVIDIA H20", "H20-96GB"),
        ("NVIDIA B300 SXM6 AC", "B300-SXM-288GB"),
        ("NVIDIA GB300", "GB300-288GB"),
        ("NVIDIA B200", "B200-SXM-180GB"),
        ("NVIDIA GB200", "GB200-186GB"),
        ("NVIDIA A10", "A10"),
        ("NVIDIA A10G", "A10G (AWS g5)"),
        ("NVIDIA A100-SXM4-40GB", "A100-SXM4-40GB"),
        ("A100-SXM4-40GB", "A100-SXM4-40GB"),  # drivers before R470 leave the vendor off
        ("NVIDIA A100 80GB PCIe", "A100-PCIe-80GB"),
        ("NVIDIA L4", "L4"),
        ("NVIDIA L40", "L40"),
        ("NVIDIA L40S", "L40S"),
        ("Tesla T4", "T4"),
        ("Tesla V100-SXM2-16GB", "V100-SXM2-16GB"),
        ("NVIDIA H100 80GB HBM3 MIG 1g.10gb", "H100-SXM5-80GB"),  # what the driver calls a MIG device
    ],
)
def test_a_driver_name_finds_its_own_model(table: PeakTable, driver: str, model: str) -> None:
    found = table.find(driver)
    assert found is not None
    assert found.model == model


@pytest.mark.parametrize(
    "driver",
    [
        "",
        "NVIDIA",
        "NVIDIA H100",
        "NVIDIA H20-3e",  # 141 GB variant with other memory
        "GRID A100-40C",  # vGPUs have a share of the board
        "NVIDIA A10-24Q",
        "GRID T4",
        "NVIDIA GeForce RTX 4090 Laptop GPU",
        "NVIDIA GeForce RTX 4090 D",
        "NVIDIA RTX 6000",
        "Tesla P100-PCIE-16GB",
        "AMD Instinct MI300X",
    ],
)
def test_another_product_gets_no_figure(table: PeakTable, driver: str) -> None:
    assert table.find(driver) is None


def test_a_short_rule_of_a_user_takes_whole_words_and_the_longest_wins() -> None:
    table = load(strict_yaml.load("- {names: [B300 *], power_watts: 1}\n- {names: [X9 *, X9 Pro *], power_watts: 2}"))
    assert [
        peaks.power_watts for name in ("NVIDIA B300 SXM7", "NVIDIA X9 Pro 80GB") if (peaks := table.find(name))
    ] == [
        1.0,
        2.0,
    ]
    gb300, b300 = table.find("NVIDIA GB300"), table.find("NVIDIA B300 SXM6 AC")
    assert gb300 is not None
    assert gb300.power_watts != 1.0
    assert b300 is not None
    assert b300.power_watts is None  # the shipped name is longer


def test_a_user_row_changes_only_what_it_says() -> None:
    plain = load().find("NVIDIA H100 80GB HBM3")
    changed = load([{"names": ["NVIDIA H100 80GB HBM3"], "dram_bytes_per_second": 3.0e12}]).find("H100 80GB HBM3")
    assert plain is not None
    assert changed is not None
    assert changed.dram_bytes_per_second == 3.0e12
    assert changed.flops == plain.flops
    assert changed.reference_clock_hertz == plain.reference_clock_hertz == 1.83e9  # not the maximum of 1980 MHz


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{names: [X]}", "must be a list"),
        ("- 5", "row 1: must be a mapping"),
        ("- {power_watts: 5}", "needs names"),
        ("- {names: []}", "list of model names"),
        ("- {names: ['*']}", "would match every model"),
        ("- {names: [X], tdp: 5}", "unknown key 'tdp'"),
        ("- {names: [X], power_watts: 0}", "above 0"),
        ("- {names: [X], power_watts: .inf}", "above 0"),
        ("- {names: [X], power_watts: true}", "above 0"),
        ("- {names: [X], reference_clock_hertz: 1830e6}", "YAML wants"),  # YAML 1.1 reads it as a text
        ("- {names: [X], multiprocessors: 1.5}", "whole number"),
        ("- {names: [X], attainable: {tensor: 80}}", "at most 1"),
        ("- {names: [X], mig: {compute_slices: 7}}", "needs compute_slices and memory_slices"),
        ("- {names: [X], flops: [1]}", "must be a mapping"),
    ],
)
def test_a_bad_row_is_refused_with_its_place(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=r"the added peaks") as refused:
        load(strict_yaml.load(text))
    assert said in str(refused.value)


def test_every_row_has_a_source_and_holds_together(table: PeakTable) -> None:
    for peaks in table.models:
        assert peaks.source != "configuration"
        if peaks.reference_clock_hertz and peaks.multiprocessors:
            rate = peaks.flops["fp16"] / peaks.multiprocessors / peaks.reference_clock_hertz
            nearest = 2 ** round(math.log2(rate))  # FLOP per clock and SM is a power of two on every tensor core so far
            assert rate == pytest.approx(nearest, rel=0.01), peaks.model
        if "fp8" in peaks.flops:
            assert peaks.flops["fp8"] == pytest.approx(2 * peaks.flops["fp16"], rel=0.02), peaks.model
        if peaks.mig and peaks.multiprocessors:
            assert all(count <= peaks.multiprocessors for count in peaks.mig.multiprocessors.values())


def test_uncertain_values_are_left_out(table: PeakTable) -> None:
    a10g, b300, h20 = (table.find(name) for name in ("NVIDIA A10G", "NVIDIA B300 SXM6 AC", "NVIDIA H20"))
    assert a10g is not None
    assert (a10g.flops, a10g.reference_clock_hertz) == ({}, None)  # sources contradict each other: 70 and 125 TFLOP/s
    assert b300 is not None
    assert b300.power_watts is None
    assert "fp4" not in b300.flops
    assert h20 is not None
    assert h20.reference_clock_hertz is None  # follows from a rate per SM that is uncertain


def test_the_shipped_table_is_what_the_collected_one_gives() -> None:
    spec = importlib.util.spec_from_file_location("dev_peaks", REPOSITORY / "dev" / "peaks.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    render: Callable[[Iterable[Mapping[str, str]]], str] = module.render
    with COLLECTED.open(newline="") as collected:
        assert (REPOSITORY / "exporter" / "peaks.yaml").read_text() == render(DictReader(collected))


def test_every_collected_model_is_found_by_its_own_name(table: PeakTable) -> None:
    with COLLECTED.open(newline="") as collected:
        for row in DictReader(collected):
            found = table.find(row["nvml_name_hint"])
            assert found is not None
            assert found.model == row["model"]
