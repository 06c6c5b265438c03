"""A panel that needs more than the smallest set of metrics says so: in place of its data, or in its description."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest

promql = pytest.importorskip("promql_parser", reason="promql-parser is not installed")

from exporter.metrics.catalogue import groups  # noqa: E402
from exporter.metrics.family import Profile  # noqa: E402
from exporter.metrics.own import OwnState  # noqa: E402
from tests.dashboards.grafana import substituted  # noqa: E402
from tests.dashboards.known import rules  # noqa: E402
from tests.dashboards.reading import NAMES, panel_queries, panels, variables  # noqa: E402
from tests.dashboards.selecting import Selected, selected  # noqa: E402


def _profiles() -> dict[str, Profile]:
    """Series of the exporter -> the smallest profile that has them."""
    found: dict[str, Profile] = {}
    for group in groups(OwnState()):
        for family in group.families:
            for end in ("", "_total", "_bucket"):
                found[f"{family.full_name}{end}"] = family.profile
            found[family.series_name] = family.profile
    return found


def _sources(text: str, recorded: Mapping[str, set[str]]) -> set[str]:
    """The exporter's series behind a query, through the rules."""
    found: set[str] = set()
    waiting = {each.series for each in selected(promql.parse(text), Selected(""))}
    while waiting:
        series = waiting.pop()
        if series in found:
            continue
        found.add(series)
        if series != "honest_gpu:threshold":  # a constant, whatever it is recorded for
            waiting |= recorded.get(series, set())
    return found


@pytest.fixture(scope="module", name="recorded")
def _recorded() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for rule in rules():
        behind = {each.series for each in selected(promql.parse(rule["expr"]), Selected(""))}
        found[rule["record"]] = found.get(rule["record"], set()) | behind
    return found


PANELS = [(name, panel) for name in NAMES for panel in panels(name)]


@pytest.mark.parametrize(("name", "panel"), PANELS, ids=[f"{name} / {panel['title']}" for name, panel in PANELS])
def test_metrics_that_may_be_off_are_named(name: str, panel: dict[str, Any], recorded: dict[str, set[str]]) -> None:
    profiles = _profiles()
    says = panel["description"] + panel["fieldConfig"]["defaults"]["noValue"]
    choices = {variable["name"]: ".*" for variable in variables(name)}
    for query in (query for query in panel_queries(name) if query.panel == panel["title"]):
        text = substituted(query.text, choices, range_="1h", rate_interval="1m")
        for series in _sources(text, recorded):
            profile = profiles.get(series, Profile.MINIMAL)
            if profile is Profile.FULL:
                family = re.sub("_(bucket|total)$", "", series)
                assert re.search(rf"--metrics.include {family}", says), f"{series}: {says}"
            if profile is Profile.DEFAULT:
                assert "profile=minimal" in says, f"{series}: {says}"
