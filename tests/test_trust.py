"""When a value is not believed: each rule by itself."""

from __future__ import annotations

import dataclasses
import math

import pytest

from exporter.fields import FIELDS
from exporter.model import Absence, Entity, Reading
from exporter.trust import (
    THRESHOLDS,
    Agreement,
    Contradiction,
    Dead,
    Frozen,
    StuckAtZero,
    Suspect,
    TrustThresholds,
    blank_reason,
    range_check,
    zero_without_sensor,
)

GPU = Entity("GPU-00000000-0000-0000-0000-000000000001")
SECONDS = THRESHOLDS.suspect_seconds
SILENT = {"pcie_transmit": 0.0, "pcie_receive": 0.0}
BOTH = {"pcie_transmit", "pcie_receive"}
ZEROS = [("sm", 0.0), ("tensor", 0.0)]


def test_each_threshold_has_a_reason() -> None:
    assert all(each.metadata["why"] for each in dataclasses.fields(TrustThresholds))


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("sm", 0.4, 0.4),
        ("sm", 1.005, 1.0),  # rounding of the hardware's counters
        ("sm", 1.006, Absence.OUT_OF_RANGE),
        ("sm", -0.1, Absence.OUT_OF_RANGE),
        ("sm", math.nan, Absence.NOT_A_NUMBER),
        ("power", math.inf, Absence.NOT_A_NUMBER),
        ("power", 1.004, 1.004),
        ("power", FIELDS["power"].high * 2, Absence.OUT_OF_RANGE),
    ],
)
def test_the_range_check(field: str, value: float, expected: float | Absence) -> None:
    checked = range_check(Reading(GPU, field, 2.0, value, 1.0))
    assert (checked.absence if checked.value is None else checked.value) == expected


def test_a_mean_over_no_time_is_refused() -> None:
    assert range_check(Reading(GPU, "sm", 2.0, 0.4, 2.0)).absence is Absence.OVERLAP


@pytest.mark.parametrize(
    ("offset", "reason"),
    [
        (0, Absence.BLANK),
        (1, Absence.NOT_FOUND),
        (2.0, Absence.NOT_SUPPORTED),
        (3, Absence.NOT_PERMITTED),
        (4, Absence.BLANK),
        (0.5, Absence.BLANK),
        (1e18, Absence.BLANK),
    ],
)
def test_why_a_blank_is_one(offset: float, reason: Absence) -> None:
    assert blank_reason(offset) is reason


def test_memory_of_zero_degrees_has_no_sensor() -> None:
    assert zero_without_sensor("memory_temperature", 0.0)
    assert not zero_without_sensor("memory_temperature", 1.0)
    assert not zero_without_sensor("temperature", 0.0)  # a cold room


def test_stuck_at_zero_is_ended_by_a_value_and_not_by_an_idle_claim() -> None:
    stuck = StuckAtZero()
    for fed in range(THRESHOLDS.stuck_samples):
        assert not stuck.holds, fed
        stuck.feed(ZEROS, 0.5)
    assert stuck.holds
    stuck.feed(ZEROS, 0.0)
    assert stuck.holds
    stuck.feed([("sm", 0.0), ("tensor", 0.001)], 1.0)
    assert not stuck.holds


@pytest.mark.parametrize(
    ("profiling", "claim"),
    [
        (ZEROS, 0.49),
        (ZEROS, None),  # nothing says that it is busy
        ([("tensor", 0.0), ("dram", 0.0)], 1.0),  # a kernel may use neither
    ],
)
def test_zeros_that_can_be_true(profiling: list[tuple[str, float]], claim: float | None) -> None:
    stuck, dead = StuckAtZero(), Dead()
    for now in range(10 * THRESHOLDS.stuck_samples):
        stuck.feed(profiling, claim)
        dead.feed(profiling, claim, float(now), silent=False)
    assert not stuck.holds
    assert not dead.holds(1e9)


@pytest.mark.parametrize(
    ("sm", "moves", "frozen"),
    [(0.4, True, True), (0.4, False, False), (0.0, True, False), (1.0, True, False)],
    ids=["frozen", "steady", "idle", "full"],
)
def test_frozen_is_what_stays_while_others_move(sm: float, *, moves: bool, frozen: bool) -> None:
    rule = Frozen()
    for second in range(THRESHOLDS.frozen_samples + 1):
        assert not rule.holds, second
        rule.feed({"sm": sm}, {"sm": sm, "power": 300.0 + moves * second})
    assert rule.holds is frozen
    rule.feed({"sm": sm + 0.01}, {"sm": sm + 0.01, "power": 1.0})
    assert not rule.holds


def test_a_value_that_is_read_less_often_has_not_moved() -> None:
    rule = Frozen()
    for second in range(2 * THRESHOLDS.frozen_samples):
        rule.feed({"sm": 0.4}, {"temperature": 50.0} if second % 2 else {})
    assert not rule.holds


@pytest.mark.parametrize(("values", "silent"), [(ZEROS, False), ([], True)], ids=["zeros", "blank"])
def test_dead_takes_reads_and_seconds(values: list[tuple[str, float]], *, silent: bool) -> None:
    slow, fast = Dead(), Dead()
    for each, step in ((slow, 1.0), (fast, 0.1)):
        each.revived(0.0)
        for read in range(1, THRESHOLDS.dead_reads + 1):
            assert not each.holds(read * step), read
            each.feed(values, 1.0, read * step, silent=silent)
    assert slow.holds(5.0)
    assert not fast.holds(0.5)
    assert fast.holds(5.0)
    slow.feed([("sm", 0.2)], 1.0, 6.0, silent=False)
    assert not slow.holds(100.0)


def test_reads_without_anything_neither_kill_nor_revive() -> None:
    dead = Dead()
    for now in range(THRESHOLDS.dead_reads):
        dead.feed(ZEROS, 1.0, float(now), silent=False)
        dead.feed([], 1.0, float(now), silent=False)
    assert dead.holds(10.0)


def test_contradicted_takes_times_in_a_row_and_only_a_value_ends_it() -> None:
    rule = Contradiction()
    for moved in (*[True] * (THRESHOLDS.contradictions - 1), False, *[True] * (THRESHOLDS.contradictions - 1)):
        rule.feed([0.0], moved)
        assert not rule.holds
    rule.feed([], moved=True)  # no rate, no contradiction
    assert not rule.holds
    rule.feed([0.0], moved=True)
    assert rule.holds
    rule.feed([0.0], moved=False)
    assert rule.holds
    rule.feed([0.0, 1.0], moved=True)
    assert not rule.holds


def test_two_counters_agree_on_real_traffic_only() -> None:
    rule = Agreement()
    for _ in range(10):
        rule.feed(9e5, 9e5)
    assert not rule.holds
    for fed in range(THRESHOLDS.agreements):
        assert not rule.holds, fed
        rule.feed(1.19e9, 1e9)
    assert rule.holds
    rule.feed(0.0, 0.0)
    assert rule.holds
    rule.feed(1.21e9, 1e9)
    assert not rule.holds


def fed(seconds: int, means: dict[str, float], model: str = "NVIDIA L40S", step: float = 1.0) -> Suspect:
    suspect = Suspect()
    for index in range(round(seconds / step) + 1):
        suspect.feed(index * step, means, model)
    return suspect


@pytest.mark.parametrize("step", [0.1, 1.0, 10.0])
def test_minutes_of_kernels_without_a_byte(step: float) -> None:
    assert fed(int(SECONDS) + 20, SILENT | {"sm": 0.9}, step=step).fields == BOTH
    assert not fed(int(SECONDS) - 20, SILENT | {"sm": 0.9}, step=step).fields


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
    assert not fed(2 * int(SECONDS), means).fields


def test_a_gpu_beside_its_cpu_has_another_way() -> None:
    assert not fed(2 * int(SECONDS), SILENT | {"sm": 0.9}, "NVIDIA GH200 480GB").fields


def test_idle_time_neither_adds_nor_acquits_and_one_byte_does() -> None:
    suspect, now = Suspect(), 0.0
    for sm in (0.9, 0.0, 0.9):
        for _ in range(int(SECONDS * 0.6)):
            now += 1.0
            suspect.feed(now, SILENT | {"sm": sm}, "")
    assert suspect.fields == BOTH
    suspect.feed(now + 1.0, {"pcie_transmit": 1.0, "pcie_receive": 0.0, "sm": 0.9}, "")
    assert not suspect.fields
    suspect.feed(now + 2.0, SILENT | {"sm": 0.9}, "")
    assert not suspect.fields


def test_an_outage_is_not_time_that_was_seen() -> None:
    suspect = Suspect()
    for end in (0.0, 1.0, 10_000.0, 10_001.0):
        suspect.feed(end, SILENT | {"sm": 0.9}, "")
    assert not suspect.fields
