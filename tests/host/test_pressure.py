"""Pressure stall information: real captures, and nodes that have none."""

from __future__ import annotations

from pathlib import Path

import pytest

from exporter.host import pressure
from exporter.host.reading import Stall
from tests.data import HERE

DATA = HERE / "hosts" / "pressure"


def test_a_real_node() -> None:
    found, problems = pressure.read(DATA)
    assert problems == []
    assert found["io"].some is not None
    assert found["io"].full is not None
    assert found["io"].some.seconds == 159.886802
    assert found["io"].full.seconds == 159.229614
    assert found["io"].some.average == pytest.approx({10: 0.0018, 60: 0.0034, 300: 0.001})
    assert found["cpu"].some is not None
    assert found["cpu"].some.seconds == 14.036781
    assert found["memory"].full is not None
    assert found["memory"].full.seconds == 0.0  # measured, and 0


def test_cpu_full_is_not_defined_for_a_node_and_hence_absent() -> None:
    assert "full" in (DATA / "cpu").read_text()
    assert pressure.read(DATA)[0]["cpu"].full is None


def test_a_kernel_without_pressure_gives_nothing_and_says_so(tmp_path: Path) -> None:
    found, problems = pressure.read(tmp_path / "pressure")
    assert found == {}
    assert len(problems) == 3
    assert "psi=1" in problems[0].remedy
    assert str(tmp_path) in problems[0].what


def test_one_missing_resource_leaves_the_others(tmp_path: Path) -> None:
    (tmp_path / "memory").write_text("some avg10=50.00 avg60=0.00 avg300=0.00 total=1500000\n")  # an old kernel's cpu
    found, problems = pressure.read(tmp_path)
    assert list(found) == ["memory"]
    assert found["memory"].some == Stall(1.5, {10: 0.5, 60: 0.0, 300: 0.0})
    assert found["memory"].full is None
    assert len(problems) == 2


@pytest.mark.parametrize(
    "text", ["", "\n", "some avg10=0.00\n", "some avg10=x avg60=0 avg300=0 total=1\n", "some total\n"]
)
def test_a_file_that_is_not_pressure_is_a_problem(tmp_path: Path, text: str) -> None:
    (tmp_path / "cpu").write_text(text)
    found, problems = pressure.read(tmp_path)
    assert found == {}
    assert problems[0].why
