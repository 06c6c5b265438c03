"""The files are what Grafana reads: checked against its schema, as far as they use it, written down independently."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.dashboards.reading import NAMES, dashboard, panels

jsonschema = pytest.importorskip("jsonschema", reason="jsonschema (PyPI) is not installed")

SCHEMA: dict[str, Any] = json.loads((Path(__file__).parent / "grafana.schema.json").read_text())

UNITS = {
    "short",
    "percentunit",
    "bytes",
    "Bps",
    "s",
    "hertz",
    "watt",
    "celsius",
    "string",
    "bool_yes_no",
    "suffix:GPU-h",
}
"""Grafana's names of units; a wrong one is drawn behind the number as it is."""


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("name", NAMES)
def test_a_dashboard_follows_the_schema(name: str) -> None:
    errors = jsonschema.Draft202012Validator(SCHEMA).iter_errors(dashboard(name))
    assert not [f"{'/'.join(map(str, error.absolute_path))}: {error.message[:300]}" for error in errors]


@pytest.mark.parametrize("name", NAMES)
def test_units_are_known_to_grafana(name: str) -> None:
    for panel in panels(name):
        fields = panel["fieldConfig"]
        changed = [change for override in fields["overrides"] for change in override["properties"]]
        used = {fields["defaults"]["unit"]} | {change["value"] for change in changed if change["id"] == "unit"}
        assert used <= UNITS, panel["title"]


@pytest.mark.parametrize("name", NAMES)
def test_a_format_fits_its_panel(name: str) -> None:
    """A table asks for rows at one moment, a heat map for buckets, all else for series."""
    wanted = {"table": ("table", True), "heatmap": ("heatmap", False), "timeseries": ("time_series", False)}
    for panel in panels(name):
        for target in panel["targets"]:
            found = (target["format"], target["instant"])
            assert found == wanted.get(panel["type"], ("time_series", True)), panel["title"]
