"""docs/field-cases.md names a test for each case from the field: those tests exist, and no number is left out.

A case that cannot be told at all is not left out: its test holds what is said instead. One that no test holds says so.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "field-cases.md"
DCGM = "tests/sources/dcgm"
NVML = "tests/sources/nvml"
NO_TEST = "no test"


class Case(NamedTuple):
    """One row of the page."""

    number: int
    section: int
    does: str
    tests: tuple[str, ...]
    held: str


def cases() -> list[Case]:
    """All rows, in the page's order."""
    found: list[Case] = []
    section = 0
    for line in PAGE.read_text().splitlines():
        if heading := re.match(r"## (\d+) ", line):
            section = int(heading[1])
        if re.match(r"\| \d+ \|", line):
            number, _, _, does, held = (cell.strip() for cell in line.strip("|").split(" | "))
            found.append(Case(int(number), section, does, tuple(re.findall(r"`(tests/[^`]+)`", held)), held))
    return found


CASES = cases()


@cache
def functions_of(path: str) -> frozenset[str]:
    """Names of the test functions of a file, those that are always skipped left out."""
    tree = ast.parse((ROOT / path).read_text())
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    return frozenset(f.name for f in functions if not any("mark.skip" in ast.unparse(d) for d in f.decorator_list))


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case.number))
def test_the_tests_of_a_case_are_there(case: Case) -> None:
    assert bool(case.tests) != (case.held == NO_TEST)
    for name in case.tests:
        path, _, function = name.partition("::")
        assert function in functions_of(path), f"case {case.number}: there is no {name}"


def test_no_number_is_left_out() -> None:
    numbers = [case.number for case in CASES]
    (unused,) = re.findall(r"^Numbers not in use: ([\d, ]+)\.$", PAGE.read_text(), re.MULTILINE)
    gaps = [int(number) for number in unused.split(", ")]
    assert numbers == sorted(numbers)
    assert sorted([*numbers, *gaps]) == list(range(1, max(numbers) + 1))


def test_those_of_the_sources_run_on_the_drivers_interfaces() -> None:
    """Sections 1 and 2: their folders' sources meet the players of tests/abi, nothing simpler."""
    for folder in (DCGM, NVML):
        assert "tests.abi" in (ROOT / folder / "driving.py").read_text()
    of_sources = [case for case in CASES if case.section in (1, 2)]
    assert {name.rsplit("/", 1)[0] for case in of_sources for name in case.tests} == {DCGM, NVML}
    assert all(case.tests for case in of_sources)


def test_a_citation_names_a_case_that_there_is() -> None:
    """ "field case N" in code, tests and docs."""
    known = {case.number for case in CASES}
    for folder in ("exporter", "tests", "docs"):
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in (".py", ".md") and path != PAGE:
                for cited in re.findall(r"[Ff]ield cases? ([\d, tond]+)", path.read_text()):
                    assert set(map(int, re.findall(r"\d+", cited))) <= known, f"{path}: {cited}"
