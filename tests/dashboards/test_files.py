"""The files themselves: current, unique, readable, and bound to nobody's Grafana."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.dashboards.reading import FOLDER, NAMES, REPOSITORY, dashboard, panels, variables

SOURCE = {"type": "prometheus", "uid": "${datasource}"}
SAY_WHY = {"timeseries", "stat", "table", "bargauge", "heatmap"}
"""Kinds of panel that show ``noValue`` where a query answers nothing (a state timeline does not)."""

ONE_LINE = {"stat": 7.5, "bargauge": 6}
"""Kinds that draw the text where the value would be, in one line: characters for a column of Grafana's grid."""


def test_the_files_are_what_the_script_writes(tmp_path: Path) -> None:
    if importlib.util.find_spec("grafana_foundation_sdk") is None or sys.version_info < (3, 11):
        pytest.skip("grafana-foundation-sdk is not installed, or Python is older than 3.11")
    subprocess.run([sys.executable, "-m", "dashboards.build", str(tmp_path)], cwd=REPOSITORY, check=True)
    written = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert written == {path.name: path.read_bytes() for path in FOLDER.glob("*.json")}, "run: make dashboards"


def test_these_are_all() -> None:
    assert sorted(path.stem for path in FOLDER.glob("*.json")) == sorted(NAMES)


def test_names_are_unique() -> None:
    documents = [dashboard(name) for name in NAMES]
    for key in ("uid", "title"):
        assert len({document[key] for document in documents}) == len(documents), key
    for document in documents:
        assert re.fullmatch(r"[a-z-]{1,40}", document["uid"])
        assert document.get("id") is None, "an id belongs to one Grafana"
        numbers = [panel["id"] for panel in document["panels"]]
        assert len(set(numbers)) == len(numbers)
        titles = [panel["title"] for panel in document["panels"]]
        assert len(set(titles)) == len(titles), sorted(titles)


def _sources(value: Any) -> list[Any]:
    """All that is called datasource, wherever it is."""
    if isinstance(value, dict):
        own = [value["datasource"]] if "datasource" in value else []
        return own + [found for inner in value.values() for found in _sources(inner)]
    return [found for inner in value for found in _sources(inner)] if isinstance(value, list) else []


@pytest.mark.parametrize("name", NAMES)
def test_no_data_source_is_fixed(name: str) -> None:
    assert all(source == SOURCE for source in _sources(dashboard(name)))
    first = dashboard(name)["templating"]["list"][0]
    assert (first["type"], first["name"], first["query"]) == ("datasource", "datasource", "prometheus")
    for panel in panels(name):
        assert panel["datasource"] == SOURCE
        assert all(target["datasource"] == SOURCE for target in panel["targets"])


@pytest.mark.parametrize("name", NAMES)
def test_every_panel_explains_itself(name: str) -> None:
    for panel in panels(name):
        title, defaults = panel["title"], panel["fieldConfig"]["defaults"]
        assert panel["type"] in SAY_WHY, title
        assert defaults["unit"], title
        assert len(panel["description"].split("Cannot tell: ")[0]) > 10, title
        assert len(panel["description"].split("Cannot tell: ")[1]) > 4, title
        empty = defaults["noValue"]
        assert len(empty) > 12, title
        assert "No data" not in empty, title
        if panel["type"] in ONE_LINE:
            room = ONE_LINE[panel["type"]] * panel["gridPos"]["w"]
            assert len(empty) <= room, f"{title}: {empty!r} would be drawn too small; there is room for {room}"
            reason = panel["description"].split("Without a value: ")[1]
            assert len(reason) > len(empty), f"{title}: the reason is not described"
        else:
            assert empty.endswith((".", "?", ").")), title


@pytest.mark.parametrize("name", NAMES)
def test_queries_have_ids_of_their_own(name: str) -> None:
    for panel in panels(name):
        ids = [target["refId"] for target in panel["targets"]]
        assert ids, panel["title"]
        assert all(ids), panel["title"]
        assert len(set(ids)) == len(ids), panel["title"]
        kinds = {(target.get("instant", False), target.get("range", False)) for target in panel["targets"]}
        assert kinds in ({(True, False)}, {(False, True)}), f"{panel['title']}: {kinds}"


@pytest.mark.parametrize("name", NAMES)
def test_panels_do_not_overlap(name: str) -> None:
    taken: dict[tuple[int, int], str] = {}
    for panel in dashboard(name)["panels"]:
        place = panel["gridPos"]
        assert place["w"] > 0
        assert place["h"] > 0
        assert place["x"] + place["w"] <= 24, panel["title"]
        for x in range(place["x"], place["x"] + place["w"]):
            for y in range(place["y"], place["y"] + place["h"]):
                assert (x, y) not in taken, f"{panel['title']} lies on {taken[x, y]}"
                taken[x, y] = panel["title"]


@pytest.mark.parametrize("name", NAMES)
def test_dashboards_lead_to_one_another(name: str) -> None:
    document = dashboard(name)
    (link,) = document["links"]
    assert (link["type"], link["includeVars"], link["keepTime"]) == ("dashboards", True, True)
    assert set(link["tags"]) <= set(document["tags"])
    uids = {dashboard(each)["uid"]: each for each in NAMES}
    for url in re.findall(r'"url": "([^"]+)"', json.dumps(document)):
        target = re.match(r"/d/([a-z-]+)\?", url)
        assert target, url
        assert target[1] in uids, url
        assert "${__url_time_range}" in url
        there = {variable["name"] for variable in variables(uids[target[1]])}
        assert set(re.findall(r"var-(\w+)=", url)) <= there, url


@pytest.mark.parametrize("name", NAMES)
def test_all_matches_series_without_the_label(name: str) -> None:
    """In a set-up with one cluster no series has the label: All must still find them."""
    for variable in variables(name):
        if variable["includeAll"] and variable["name"] != "node":
            assert variable["allValue"] == ".*", variable["name"]
            assert variable["current"]["value"] == ["$__all"]
