"""Tables: labels are text, cells without a value say so shortly, and links name columns that are there."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.dashboards.reading import NAMES, panels

TABLES = [(name, panel) for name in NAMES for panel in panels(name) if panel["type"] == "table"]
IDS = [f"{name} / {panel['title']}" for name, panel in TABLES]


def _headings(panel: dict[str, Any]) -> dict[str, str]:
    """Label, or Value -> heading."""
    (names,) = [step["options"]["renameByName"] for step in panel["transformations"] if step["id"] == "organize"]
    return dict(names)


def _overrides(panel: dict[str, Any], heading: str) -> dict[str, Any]:
    """What is set for a column, the last one wins."""
    return {
        change["id"]: change["value"]
        for override in panel["fieldConfig"]["overrides"]
        if override["matcher"]["options"] in (heading, "/.*/")
        for change in override["properties"]
    }


@pytest.mark.parametrize(("name", "panel"), TABLES, ids=IDS)
def test_labels_are_text_and_values_have_a_unit(name: str, panel: dict[str, Any]) -> None:
    """Without it Grafana would show job 7 as 700 %, and the panel's whole reason for no data in every empty cell."""
    for label, heading in _headings(panel).items():
        found = _overrides(panel, heading)
        if label.startswith("Value"):
            assert found["unit"] != "string", heading
            assert found["noValue"] == "\N{EN DASH}", heading
        else:
            assert found["unit"] == "string", heading
            assert found["noValue"] in ("", "\N{EN DASH}"), heading
            assert found["noValue"] == "" or heading == "Node", heading


@pytest.mark.parametrize(("name", "panel"), TABLES, ids=IDS)
def test_links_name_columns_of_the_table(name: str, panel: dict[str, Any]) -> None:
    """A column is there only if a series has the label, so a link lies on a column that it names."""
    headings = set(_headings(panel).values())
    for override in panel["fieldConfig"]["overrides"]:
        for change in override["properties"]:
            for link in change["value"] if change["id"] == "links" else []:
                named = set(re.findall(r"\$\{__data\.fields\.(\w+)\}", link["url"]))
                assert named, link
                assert named <= headings, link
                assert override["matcher"]["options"] in {*named, "/.*/"}, link


@pytest.mark.parametrize(("name", "panel"), TABLES, ids=IDS)
def test_tables_are_sorted_by_a_column_that_is_there(name: str, panel: dict[str, Any]) -> None:
    headings = set(_headings(panel).values())
    assert {each["displayName"] for each in panel["options"].get("sortBy", [])} <= headings
