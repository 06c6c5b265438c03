"""Which test holds each case from the field: sections 1 and 2 of CASES, all of them over the drivers' own interfaces.

A case that cannot be told at all is not left out: its test holds what is said instead.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CASES = ROOT.parent / "shared" / "CASES.md"
DCGM = "tests/sources/dcgm"
NVML = "tests/sources/nvml"

COVERED: dict[int, tuple[str, ...]] = {
    # 1: blank and out-of-range values
    1: (
        f"{DCGM}/test_cases.py::test_links_that_a_board_does_not_have_are_left_out",
        f"{DCGM}/test_values.py::test_blank_integers",
        f"{NVML}/test_faults.py::test_a_value_that_fails_is_absent_and_the_others_are_there",
    ),
    2: (
        f"{DCGM}/test_cases.py::test_a_board_with_mig_has_no_claim_and_says_why",
        f"{NVML}/test_reading.py::test_instances_have_a_measurement_and_memory_and_no_claim",
    ),
    3: (f"{DCGM}/test_cases.py::test_blanks_until_profiling_is_ready_then_values_unchanged",),
    4: (
        f"{DCGM}/test_cases.py::test_a_blank_is_not_scaled_and_one_gpu_does_not_cost_the_page",
        f"{NVML}/test_faults.py::test_values_that_are_not_numbers_are_blank",
    ),
    7: (
        f"{DCGM}/test_cases.py::test_a_neighbours_field_in_place_of_the_claim_is_refused_and_counted",
        f"{NVML}/test_reading.py::test_processes_and_their_share",
    ),
    8: (f"{DCGM}/test_cases.py::test_an_instance_above_one_is_not_shown_as_healthy",),
    10: (f"{DCGM}/test_cases.py::test_an_instance_is_rated_by_itself",),
    12: (
        f"{DCGM}/test_cases.py::test_bytes_of_links_are_not_watched_on_instances",
        f"{DCGM}/test_mig.py::test_instances_are_measured_and_the_board_has_what_is_the_board_s",
    ),
    14: (
        f"{DCGM}/test_cases.py::test_absent_stays_absent_whatever_the_release_prints",
        f"{DCGM}/test_cases.py::test_a_zero_that_is_measured_stays_a_zero",
    ),
    15: (f"{DCGM}/test_cases.py::test_nothing_is_written_where_there_is_nothing",),
    16: (
        f"{DCGM}/test_cases.py::test_nothing_is_written_where_there_is_nothing",
        f"{NVML}/test_faults.py::test_one_metric_that_fails_costs_that_metric",
    ),
    # 2: profiling stuck, absent or contested
    18: (
        f"{DCGM}/test_cases.py::test_stuck_at_zero_is_a_state_of_its_gpu_and_not_idle",
        f"{DCGM}/test_profiling_faults.py::test_profiling_that_stays_dead_is_watched_anew_ever_less_often",
    ),
    19: (
        f"{DCGM}/test_cases.py::test_stuck_at_zero_is_a_state_of_its_gpu_and_not_idle",
        f"{DCGM}/test_profiling_faults.py::test_dead_profiling_is_watched_anew",
    ),
    20: (
        f"{DCGM}/test_cases.py::test_blank_for_long_is_paused",
        f"{DCGM}/test_profiling_faults.py::test_dead_profiling_is_watched_anew",
    ),
    21: (
        f"{DCGM}/test_cases.py::test_stuck_at_zero_is_a_state_of_its_gpu_and_not_idle",
        f"{DCGM}/test_profiling_faults.py::test_dead_profiling_is_watched_anew",
    ),
    23: (f"{DCGM}/test_cases.py::test_fields_that_scatter_are_not_joined",),
    25: (
        f"{DCGM}/test_false_zeros.py::test_pcie_at_zero_while_the_gpus_own_totals_move_is_refused",
        f"{DCGM}/test_false_zeros.py::test_before_hopper_pcie_at_zero_for_minutes_of_kernels_is_marked",
    ),
    26: (f"{DCGM}/test_false_zeros.py::test_nvlink_at_zero_while_the_driver_counts_is_refused",),
    27: (
        f"{DCGM}/test_cases.py::test_a_gpu_without_profiling_keeps_the_rest",
        f"{DCGM}/test_reading.py::test_each_gpu_is_asked_what_it_supports",
        f"{DCGM}/test_profiling_faults.py::test_why_there_is_no_measurement",
        f"{NVML}/test_reading.py::test_gpus_without_gpm_have_the_claim_alone",
    ),
    28: (f"{DCGM}/test_profiling_faults.py::test_locked_by_another_client_until_it_ends",),
    29: (f"{DCGM}/test_cases.py::test_a_gpu_without_profiling_keeps_the_rest",),
}


@cache
def functions_of(path: str) -> frozenset[str]:
    """Names of the test functions of a file, those that are always skipped left out."""
    tree = ast.parse((ROOT / path).read_text())
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    return frozenset(f.name for f in functions if not any("mark.skip" in ast.unparse(d) for d in f.decorator_list))


@pytest.mark.parametrize("case", COVERED)
def test_the_tests_of_a_case_are_there(case: int) -> None:
    for name in COVERED[case]:
        path, _, function = name.partition("::")
        assert function in functions_of(path), f"case {case}: there is no {name}"


def test_they_run_on_the_drivers_interfaces() -> None:
    """Their folders' sources meet the players of tests/abi, nothing simpler."""
    for folder in (DCGM, NVML):
        assert "tests.abi" in (ROOT / folder / "driving.py").read_text()
    assert {name.rsplit("/", 1)[0] for tests in COVERED.values() for name in tests} == {DCGM, NVML}


def test_no_case_is_left_out() -> None:
    if not CASES.exists():
        pytest.skip("the list of cases is not here")
    text = CASES.read_text()
    sections = text[text.index("\n## 1 ") : text.index("\n## 3 ")]
    assert {int(number) for number in re.findall(r"^\| (\d+) \|", sections, re.MULTILINE)} == set(COVERED)
