"""Every query of every panel and variable, asked of a real Prometheus as Grafana would ask it, returns data."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace

import pytest

from tests.dashboards.grafana import one_of, substituted
from tests.dashboards.reading import NAMES, Query, panel_queries, variables
from tests.dashboards.site import Site, site
from tests.end_to_end.processes import wait_for

pytestmark = pytest.mark.system

pytest.importorskip("grpc", reason="grpcio is not installed: no kubelet")

RANGE, RATE_INTERVAL, STEP = "60s", "10s", "1s"

_RDMA = "no machine that runs this is known to have an RDMA port"
EMPTY: Mapping[str, str] = {
    "node-gpu / Read from storage; RDMA / B": _RDMA,
    "node-gpu / Read from storage; RDMA / C": _RDMA,
}
"""Queries that return nothing on this site, and why. One that begins to return something must leave the list."""


@pytest.fixture(scope="module", name="running")
def _running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("site")
    with site(folder) as started:
        settled = "count(honest_gpu:threshold) and count(cluster:honest_gpu_unattributed_seconds:rate5m)"
        wait_for(lambda: started.server.query(settled), f"the rules' series\n{(folder / 'prometheus.log').read_text()}")
        time.sleep(12)  # a rate interval of scrapes, of numbers that had settled
        yield started


def _text(text: str, choices: Mapping[str, str]) -> str:
    """As Grafana would send it, with the steps of recorded series shortened as the rules' intervals are."""
    return substituted(text, choices, range_=RANGE, rate_interval=RATE_INTERVAL).replace(":5m]", f":{STEP}]")


def _choices(name: str, running: Site, **taken: list[str]) -> dict[str, str]:
    """The variables of a dashboard in their order, each as the choice before it leaves it: All, unless ``taken``."""
    choices: dict[str, str] = {}
    for variable in variables(name):
        own = variable["name"]
        series, label = variable["query"]["query"].removeprefix("label_values(").removesuffix(")").rsplit(", ", 1)
        options = running.values(_text(series, choices), label)
        if own in taken:
            choices[own] = one_of(taken[own]) if variable["multi"] else taken[own][0]
        elif variable["includeAll"]:
            choices[own] = variable["allValue"] if variable.get("allValue") else one_of(options or [""])
        else:
            choices[own] = options[0]
    return choices


def _answers(running: Site, query: Query, choices: Mapping[str, str]) -> list[tuple[dict[str, str], float]]:
    """Series with a number: NaN is drawn as nothing."""
    found = running.server.query(_text(query.text, choices))
    return [(labels, value) for labels, value in found if not math.isnan(value)]


def _ways(name: str, running: Site) -> list[dict[str, str]]:
    """The choices under which a dashboard is looked at: a query must return data under one of them."""
    if name == "node-gpu":
        return [_choices(name, running, node=[node]) for node in running.nodes.values()]
    return [_choices(name, running)]


@pytest.mark.parametrize("name", NAMES)
def test_every_panel_has_data(name: str, running: Site) -> None:
    ways = _ways(name, running)
    empty = {
        str(query): query.text
        for query in panel_queries(name)
        if not any(_answers(running, query, choices) for choices in ways)
    }
    unexpected = {key: text for key, text in empty.items() if key not in EMPTY}
    assert not unexpected, "\n".join(f"{key}\n    {text}" for key, text in unexpected.items())
    listed = {key for key in EMPTY if key.startswith(f"{name} / ")}
    assert listed <= set(empty), "these return data now: take them off the list"


@pytest.mark.parametrize("name", NAMES)
def test_every_variable_has_options(name: str, running: Site) -> None:
    choices: dict[str, str] = {}
    for variable in variables(name):
        series, label = variable["query"]["query"].removeprefix("label_values(").removesuffix(")").rsplit(", ", 1)
        assert running.values(_text(series, choices), label), variable["name"]
        choices = _choices(name, running)


def test_a_choice_narrows_and_all_includes_nodes_without_the_label(running: Site) -> None:
    """One node is in a cluster, two have no such label; several nodes at once are told by a regular expression."""
    scraped = next(query for query in panel_queries("exporter-health") if query.panel == "Scraped")

    def count(**taken: list[str]) -> list[float]:
        return [value for _, value in _answers(running, scraped, _choices("exporter-health", running, **taken))]

    assert count() == [3]
    assert count(cluster=["east"]) == [1]
    assert count(node=[running.nodes["slurm"], running.nodes["pods"]]) == [2]
    assert count(node=[running.nodes["slurm"]], cluster=["east"]) == []


def test_a_workload_is_its_own_gpus_only(running: Site) -> None:
    gpus = next(query for query in panel_queries("workload") if query.panel == "GPUs")

    def held(**taken: list[str]) -> float:
        ((_, value),) = _answers(running, gpus, _choices("workload", running, **taken))
        return value

    assert held(job_id=["7"]) == 8
    assert held(namespace=["ml"]) == 3
    assert held(namespace=["ml"], pod=["rank-0"]) == 1
    assert held(namespace=["lab"], pod=["a", "b"]) == 1
    assert held(job_id=["7", "9"]) == 10


def test_parts_of_a_gpu_fill_the_graph(running: Site) -> None:
    """The stack ends at 1, and the claim is the workload's: tiny kernels claim 90 % and work below 1 %."""
    queries = [query for query in panel_queries("node-gpu") if query.panel.startswith("GPU $gpu")]
    choices = _choices("node-gpu", running, node=[running.nodes["slurm"]], gpu=["2"])
    at_once = replace(queries[0], text=" or ".join(query.text for query in queries))  # as Grafana asks: of one moment
    values = {labels.get("part", "claimed"): value for labels, value in _answers(running, at_once, choices)}
    assert set(values) <= {query.legend for query in queries}
    claimed = values.pop("claimed")
    assert sum(values.values()) == pytest.approx(1.0, abs=1e-6)
    assert claimed == pytest.approx(0.9, abs=0.1)
    assert values["working"] < 0.01
    assert values["hollow"] == pytest.approx(claimed, abs=0.05)


def test_the_tiny_kernels_lead_the_divergences(running: Site) -> None:
    (ranked,) = [query for query in panel_queries("fleet") if query.panel == "Top ten divergences"]
    answers = sorted(_answers(running, ranked, _choices("fleet", running)), key=lambda answer: -answer[1])
    assert len(answers) == 10
    labels, gap = answers[0]
    assert gap > 0.8
    assert labels["gpu"] in {"1", "2", "3", "6"}, "tiny kernels, a hang, or a collective that spins"
