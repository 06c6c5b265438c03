"""docs/scaling.md as its examples say: agents share the nodes, one Prometheus has the rules, a store has the past."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.fleet_nodes import GPUS
from tests.alerting.compressed import REPOSITORY
from tests.end_to_end.processes import wait_for
from tests.fleet.scaled import EXAMPLES, Pace, Site, scaled
from tests.fleet.servers import Server, binary

pytestmark = pytest.mark.system

COUNT = 8


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with scaled(tmp_path_factory.mktemp("scaling"), COUNT, Pace(quick=True)) as running:
        yield running


def total(server: Server, expression: str) -> float:
    return sum(value for _, value in server.query(expression))


def test_each_node_belongs_to_one_agent(site: Site) -> None:
    def shares() -> list[set[str]]:
        return [{each["labels"]["instance"] for each in one.get("targets")["activeTargets"]} for one in site.agents]

    wait_for(lambda: all(shares()), "both agents have nodes", 60)
    first, second = shares()
    assert first.isdisjoint(second)
    assert len(first | second) == COUNT


def test_rules_see_all_gpus_in_one_place(site: Site) -> None:
    """A pod's ranks, a model, a cluster: what spans nodes cannot be told by one agent."""
    wait_for(lambda: total(site.central, "count(honest_gpu_info)") == COUNT * GPUS, "the central one has all GPUs", 60)
    whole = 'sum(cluster:honest_gpu_time_seconds:rate5m{cluster="east"})'
    wait_for(lambda: total(site.central, whole) == pytest.approx(COUNT * GPUS, rel=0.05), "the rules have all GPUs", 60)
    assert total(site.central, 'count(honest_gpu:threshold{cluster="east"})') > 10
    failed = [g for group in site.central.get("rules")["groups"] for g in group["rules"] if g["health"] == "err"]
    assert failed == []


def test_the_store_has_raw_and_recorded_series(site: Site) -> None:
    """And gives GPU-seconds by namespace and part as Prometheus does."""
    if site.store is None:
        pytest.skip("victoria-metrics is not installed (Debian package victoria-metrics)")
    store = site.store
    wait_for(lambda: total(store, "count(honest_gpu_info)") == COUNT * GPUS, "the store has all GPUs", 60)
    wait_for(lambda: total(store, "count(cluster:honest_gpu_sm_active:ratio_rate5m)"), "and what is recorded", 60)
    asked = 'sum by (namespace, part) (rate(honest_gpu_workload_time_seconds_total{namespace!=""}[10s]))'
    wait_for(lambda: total(store, asked) == pytest.approx(COUNT * GPUS, rel=0.1), "GPU-seconds of all GPUs", 60)
    assert {labels["part"] for labels, _ in store.query(asked)} == {"working", "stalled", "hollow", "idle"}


def test_an_agent_that_is_away_is_told(site: Site) -> None:
    """Its nodes just vanish: no other alert says so."""
    away = 'ALERTS{alertname="HonestGpuExporterAbsent",job="honest-gpu-agent",cluster="east",alertstate="firing"}'
    wait_for(lambda: total(site.central, 'count(up{job="honest-gpu-agent"} == 1)') == 2, "both agents are seen", 60)
    assert site.central.query(away) == []
    site.agents[1].stop()
    wait_for(lambda: site.central.query(away), "the alert fires", 60)
    (alert,) = site.central.query(away)
    assert alert[0]["instance"] == site.agents[1].address


@pytest.mark.parametrize("name", ["agent.yml", "central.yml"])
def test_promtool_takes_the_examples(tmp_path: Path, name: str) -> None:
    shutil.copytree(REPOSITORY / "rules", tmp_path / "rules")
    shutil.copy(EXAMPLES / name, tmp_path)
    agent_mode = ["--agent"] if name == "agent.yml" else []
    command = [binary("promtool", "prometheus"), "check", "config", *agent_mode, str(tmp_path / name)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
