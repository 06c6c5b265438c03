"""The fleet benchmark on a few nodes: every node is seen, every rule and every dashboard query is evaluated."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.fleet import Figures, fleet, measured
from bench.fleet_nodes import GPUS, Nodes
from tests.alerting.compressed import rules
from tests.dashboards.reading import NAMES, panel_queries
from tests.end_to_end.processes import Prometheus, wait_for

pytestmark = pytest.mark.system

COUNT = 10


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Nodes, Prometheus]]:
    """Rules sixty times faster than shipped, a scrape a second."""
    folder = tmp_path_factory.mktemp("fleet")
    (folder / "rules").mkdir()
    with fleet(folder, COUNT, "1s", rules(folder / "rules")) as (made, server):
        money, peers = "cluster:honest_gpu_wasted_cost_per_hour:rate5m", "workload:honest_gpu_sm_active:median_rate5m"
        settled = f"count({money}) and count({peers})"
        wait_for(lambda: server.query(settled), "the rules have been evaluated", 60)
        yield made, server


@pytest.fixture(scope="module")
def figures(site: tuple[Nodes, Prometheus]) -> Figures:
    return measured(*site, step=1.0, cpu=0.0)


def test_every_gpu_of_every_node_is_a_series_of_its_own(site: tuple[Nodes, Prometheus]) -> None:
    _, server = site
    assert server.one("count(up == 1)") == COUNT
    assert server.one("count(count by (uuid) (honest_gpu_info))") == COUNT * GPUS
    assert server.one("count(count by (namespace, pod) (honest_gpu_allocation_info))") == 2 * COUNT


def test_the_promise_of_series_a_gpu_holds_with_holders(figures: Figures) -> None:
    """100 by default, those of the node itself included."""
    assert 30 < figures.series_a_gpu <= 100
    assert 10 < figures.recorded_a_gpu < 50


def test_rules_of_a_fleet_are_evaluated_without_a_failure(figures: Figures) -> None:
    assert figures.failures == 0
    files = (Path(__file__).parents[2] / "rules").glob("*.yml")
    groups = {name for path in files for name in re.findall(r"- name: (\S+)", path.read_text())}
    assert figures.rules.keys() == groups


def test_every_dashboard_query_is_measured(figures: Figures) -> None:
    """None is refused: an answer that is no 200 fails the fixture."""
    assert figures.queries.keys() == {str(query) for name in NAMES for query in panel_queries(name)}


def test_the_table_has_all_figures(figures: Figures) -> None:
    lines = list(figures.lines())
    assert lines[0] == "| GPUs | 80 |"
    assert all(re.fullmatch(r"\| .+ \| .*\d.* \|", line) for line in lines)
    text, sent = figures.bytes_a_scrape
    assert 0 < sent < text
