"""Every query parses, and every series and label in it exists."""

from __future__ import annotations

import re

import pytest

promql = pytest.importorskip("promql_parser", reason="promql-parser is not installed")

from tests.dashboards import labels  # noqa: E402
from tests.dashboards.grafana import substituted  # noqa: E402
from tests.dashboards.known import exported, rules  # noqa: E402
from tests.dashboards.reading import NAMES, Query, panel_queries, panels, variables  # noqa: E402


def _known() -> dict[str, frozenset[str]]:
    """The exporter's series and those of the rules, which may build on one another."""
    known = exported()
    waiting = rules()
    while waiting:
        later = []
        for rule in waiting:
            try:
                found = labels.of(promql.parse(rule["expr"]), known)
            except labels.Unknown:
                later.append(rule)
                continue
            known[rule["record"]] = known.get(rule["record"], frozenset()) | found | set(rule.get("labels", ()))
        if len(later) == len(waiting):
            labels.of(promql.parse(later[0]["expr"]), known)  # raises, and says what is wrong
        waiting = later
    return known


@pytest.fixture(scope="module", name="known")
def _fixture() -> dict[str, frozenset[str]]:
    return _known()


def _plain(text: str, dashboard: str) -> str:
    choices = {variable["name"]: ".*" for variable in variables(dashboard)}
    return substituted(text, choices, range_="1h", rate_interval="1m")


@pytest.mark.parametrize("name", NAMES)
def test_every_query_of_a_panel_names_what_exists(name: str, known: dict[str, frozenset[str]]) -> None:
    for query in panel_queries(name):
        try:
            found = labels.of(promql.parse(_plain(query.text, name)), known)
        except (ValueError, labels.Unknown) as problem:
            pytest.fail(f"{query}: {problem}\n{query.text}")
        wanted = set(re.findall(r"{{(\w+)}}", query.legend))
        assert wanted <= found, f"{query}: the legend names {wanted - found}, the result has {sorted(found)}"


@pytest.mark.parametrize("name", NAMES)
def test_columns_of_tables_are_labels_or_values(name: str, known: dict[str, frozenset[str]]) -> None:
    for panel in panels(name):
        if panel["type"] != "table":
            continue
        found = [labels.of(promql.parse(_plain(target["expr"], name)), known) for target in panel["targets"]]
        there = frozenset().union(*found)
        several = len(panel["targets"]) > 1
        values = {f"Value #{target['refId']}" for target in panel["targets"]} if several else {"Value"}
        steps = {step["id"]: step["options"] for step in panel["transformations"]}
        renamed = set(steps["organize"]["renameByName"])
        if "groupingToMatrix" in steps:
            row, column = steps["groupingToMatrix"]["rowField"], steps["groupingToMatrix"]["columnField"]
            assert {row, column} <= there
            assert renamed == {f"{row}\\{column}"}, "Grafana's name of the first column"
        else:
            assert renamed <= there | values, panel["title"]
            assert values <= renamed or panel["fieldConfig"]["defaults"]["unit"] == "string", panel["title"]
        if several:  # joined into one row on their labels: these must be the same
            assert len(set(found)) == 1, f"{panel['title']}: {found}"


@pytest.mark.parametrize("name", NAMES)
def test_every_query_of_a_variable_names_what_exists(name: str, known: dict[str, frozenset[str]]) -> None:
    for variable in variables(name):
        asked = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["query"]["query"])
        assert asked, variable["query"]
        assert asked[2] in labels.of(promql.parse(_plain(asked[1], name)), known), variable["name"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("sum by (part) (honest_gpu_busy_ratio)", "no label part"),
        ("honest_gpu_bussy_ratio", "no series"),
        ('honest_gpu_busy_ratio{model="x"}', "no label model"),
        ("honest_gpu_busy_ratio * on (gpu) group_left (pod) honest_gpu_info", "no label pod"),
    ],
)
def test_wrong_names_are_found(text: str, problem: str, known: dict[str, frozenset[str]]) -> None:
    with pytest.raises(labels.Unknown, match=problem):
        labels.of(promql.parse(text), known)


def test_a_label_that_a_query_makes_is_known(known: dict[str, frozenset[str]]) -> None:
    made = 'max by (short) (label_replace(honest_gpu_info, "short", "$1", "model", "(.+)"))'
    assert labels.of(promql.parse(made), known) == {"short"}


def test_variables_in_queries_are_those_of_the_dashboard() -> None:
    """``$pod`` on a dashboard without a variable pod would be sent as it is."""
    built_in = {"__rate_interval", "__range"}
    for name in NAMES:
        own = {variable["name"] for variable in variables(name)} | built_in
        asked = [*panel_queries(name), *(Query(name, "", v["name"], v["query"]["query"]) for v in variables(name))]
        for query in asked:
            used = set(re.findall(r"\$(\w+)", query.text))
            assert used <= own, f"{query}: {used - own}"
