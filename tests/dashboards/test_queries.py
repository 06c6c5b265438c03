"""How queries are written: counters by their growth, windows that follow the scrape interval, cheap at 2,000 GPUs."""

from __future__ import annotations

from datetime import timedelta

import pytest

promql = pytest.importorskip("promql_parser", reason="promql-parser is not installed")

from tests.dashboards.grafana import substituted  # noqa: E402
from tests.dashboards.reading import NAMES, Query, panel_queries, panels, variables  # noqa: E402
from tests.dashboards.selecting import Selected, selected  # noqa: E402

RANGE, RATE_INTERVAL = "3607s", "61s"
"""Told apart from anything that is written out."""

GROWTH = ("rate", "increase")
AS_THEY_ARE = {
    "node-gpu / Xid errors / A": "a code's counter begins with its first error, which no growth would show",
}
"""Counters that are shown as they are, and why."""

FOR_THE_MODEL = "honest_gpu_info"
"""The one series of the exporter that the fleet's graphs join to recorded ones."""


def _series(query: Query) -> list[Selected]:
    choices = {variable["name"]: ".*" for variable in variables(query.dashboard)}
    text = substituted(query.text, choices, range_=RANGE, rate_interval=RATE_INTERVAL)
    return list(selected(promql.parse(text), Selected("")))


ALL = [query for name in NAMES for query in panel_queries(name)]


def test_all_series_are_found() -> None:
    text = "sum by (a) (rate(x[5m])) / scalar(max(y)) > sum_over_time((z and w)[1h:5m])"
    assert [each.series for each in selected(promql.parse(text), Selected(""))] == ["x", "y", "z", "w"]


@pytest.mark.parametrize("query", ALL, ids=str)
def test_counters_are_shown_by_their_growth(query: Query) -> None:
    plain = [
        each.series
        for each in _series(query)
        if each.series.endswith(("_total", "_bucket", "_sum", "_count")) and not set(GROWTH) & set(each.within)
    ]
    assert bool(plain) == (str(query) in AS_THEY_ARE), f"{plain}\n{query.text}"


@pytest.mark.parametrize("query", ALL, ids=str)
def test_windows_follow_the_scrape_interval_or_the_time_range(query: Query) -> None:
    """A fixed window is too short for a slow scrape, except in steps of just its length over the range."""
    for each in _series(query):
        if each.window is not None:
            allowed = {"61s": "rate", "3607s": "the range"} | ({"300s": "a step"} if each.step else {})
            assert f"{each.window.total_seconds():.0f}s" in allowed, f"{each}\n{query.text}"
        if each.step is not None:
            assert each.step == timedelta(minutes=5), "as long as the rules' windows: no overlap, no gap"


def test_the_fleet_asks_recorded_series() -> None:
    """Its graphs and totals; numbers of now may ask the exporters' own series."""
    for panel in panels("fleet"):
        for query in (query for query in panel_queries("fleet") if query.panel == panel["title"]):
            instant = panel["targets"][0]["instant"]
            for each in _series(query):
                if ":" not in each.series and each.series != FOR_THE_MODEL:
                    assert instant, f"{query}: {each.series} over time"
                    assert each.window is None, f"{query}: {each.series} over time"
                    assert each.step is None, f"{query}: {each.series} over time"


@pytest.mark.parametrize("name", ["fleet", "exporter-health"])
def test_graphs_over_all_nodes_have_few_points_and_few_lines(name: str) -> None:
    """A line a node or GPU is a haze at 250 nodes, and thousands of points of each cost seconds."""
    for panel in panels(name):
        if panel["type"] == "timeseries":
            assert panel["maxDataPoints"] <= 300, panel["title"]
            assert panel["interval"] == "1m", panel["title"]
            for target in panel["targets"]:
                assert "{{instance}}" not in target["legendFormat"], panel["title"]
                assert "{{gpu}}" not in target["legendFormat"], panel["title"]
