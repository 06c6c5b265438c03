"""Recorded series at every level, against numbers worked out by hand."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.rules.nodes import WELL, Gauge, Gpu, Node, Spec, played
from tests.rules.promtool import Value, rules, values

pytestmark = pytest.mark.system

MINUTES = 75  # more than an hour, for increase1h
PRICE: Mapping[str, Spec] = {'honest_gpu_price_per_hour{currency="EUR"}': Gauge(2, 2)}
WORKS = Gpu(more=PRICE)  # busy .97, SM .9, tensor .5, DRAM .4: working .5, stalled .4, hollow .07, idle .03
IDLES = Gpu(busy=(0, 0), sm=(0, 0), tensor=(0, 0), dram=(0, 0), more=PRICE)
POD = {"namespace": "ml", "pod": "train-0"}
JOB = {"job_id": "7", "user": "eve", "account": "bio"}
A = {"job": "honest-gpu-exporter", "instance": "a:9836"}

# level -> (labels, busy, sm, tensor, dram, working, state "mixed" in GPUs)
SHARES: Mapping[str, tuple[Mapping[str, str], float, float, float, float, float, float]] = {
    "instance": (A, 0.485, 0.45, 0.25, 0.2, 0.25, 2),
    "model": ({"model": "a"}, 0.485, 0.45, 0.25, 0.2, 0.25, 2),
    "cluster": ({}, 1.94 / 3, 0.6, 1 / 3, 0.8 / 3, 1 / 3, 3),
    "namespace": ({"namespace": "ml"}, 0.485, 0.45, 0.25, 0.2, 0.5, 2),
    "namespace_pod": (POD, 0.485, 0.45, 0.25, 0.2, 0.5, 2),
    "job_id": (JOB, 0.97, 0.9, 0.5, 0.4, 0.5, 1),
}
WASTED: Mapping[str, tuple[Mapping[str, str], float, float, float]] = {
    # level -> (labels, GPUs, GPU-hours an hour, money an hour); workloads' own counters: .3 hollow, .2 idle
    "instance": (A, 1.1, 0.5, 2.2),
    "model": ({"model": "a"}, 1.1, 1.1, 2.2),
    "cluster": ({}, 1.2, 1.0, 2.4),
    "namespace": ({"namespace": "ml"}, 0.5, 0.5, 2.2),
    "namespace_pod": (POD, 0.5, 0.5, 2.2),
    "job_id": (JOB, 0.5, 0.5, 0.2),
}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, list[Value]]:
    """A pod with one GPU that works and one that idles, a job with one that works, in one cluster; all series."""
    nodes = {
        "a": Node((WORKS, IDLES)),
        "b": Node((WORKS,), who=",".join(f'{name}="{value}"' for name, value in JOB.items())),
    }
    series = {
        key.replace('cluster="a"', 'cluster="x"').replace('cluster="b"', 'cluster="x"'): text
        for key, text in played(nodes, WELL * MINUTES).items()
    }
    names = sorted({str(rule["record"]) for rule in rules("record")})
    return values(tmp_path_factory.mktemp("recorded"), series, names, MINUTES - 1)


def one(found: list[Value], labels: Mapping[str, str]) -> float:
    """The value of the one series with exactly these labels, beside the cluster's."""
    (value,) = [each.value for each in found if each.labels == {"cluster": "x", **labels}]
    return value


@pytest.mark.parametrize("level", SHARES)
def test_shares(recorded: Mapping[str, list[Value]], level: str) -> None:
    labels, *expected, mixed = SHARES[level]
    for metric, share in zip(("busy", "sm_active", "tensor_active", "dram_active", "working"), expected, strict=True):
        assert one(recorded[f"{level}:honest_gpu_{metric}:ratio_rate5m"], labels) == pytest.approx(share), metric
    states = recorded[f"{level}:honest_gpu_state_seconds:rate5m"]
    assert one(states, {**labels, "state": "mixed"}) == pytest.approx(mixed)


@pytest.mark.parametrize("level", WASTED)
def test_waste_in_gpus_in_hours_and_in_money(recorded: Mapping[str, list[Value]], level: str) -> None:
    labels, gpus, hours, money = WASTED[level]
    assert one(recorded[f"{level}:honest_gpu_wasted_seconds:rate5m"], labels) == pytest.approx(gpus)
    assert one(recorded[f"{level}:honest_gpu_wasted_hours:increase1h"], labels) == pytest.approx(hours)
    cost = recorded[f"{level}:honest_gpu_wasted_cost_per_hour:rate5m"]
    assert one(cost, {**labels, "currency": "EUR"}) == pytest.approx(money)


def test_gpu_seconds_by_part(recorded: Mapping[str, list[Value]]) -> None:
    for level, labels, parts in (
        ("instance", A, {"working": 0.5, "stalled": 0.4, "hollow": 0.07, "idle": 1.03}),
        ("model", {"model": "b"}, {"working": 0.5, "stalled": 0.4, "hollow": 0.07, "idle": 0.03}),
        ("cluster", {}, {"working": 1.0, "stalled": 0.8, "hollow": 0.14, "idle": 1.06}),
    ):
        found = recorded[f"{level}:honest_gpu_time_seconds:rate5m"]
        for part, gpus in parts.items():
            assert one(found, {**labels, "part": part}) == pytest.approx(gpus), (level, part)
    for level, labels in (("namespace", {"namespace": "ml"}), ("namespace_pod", POD), ("job_id", JOB)):
        found = recorded[f"{level}:honest_gpu_workload_time_seconds:rate5m"]
        for part, gpus in (("working", 0.5), ("hollow", 0.3), ("idle", 0.2)):
            assert one(found, {**labels, "part": part}) == pytest.approx(gpus), (level, part)


def test_the_mean_of_a_pod_has_the_peers_beside_it(recorded: Mapping[str, list[Value]]) -> None:
    """45 % of a pod with one GPU at 90 % and one at 0: the level of single GPUs tells them apart."""
    held = recorded["gpu:honest_gpu_held_sm_active:ratio_rate5m"]
    assert [v.value for v in held if v.labels["workload"] == "train-0"] == pytest.approx([0.9, 0.0])


def test_what_all_boards_cost(recorded: Mapping[str, list[Value]]) -> None:
    assert one(recorded["cluster:honest_gpu_price_per_hour:sum"], {"currency": "EUR"}) == 6
    by_part = recorded["cluster:honest_gpu_cost_per_hour:rate5m"]
    assert sum(each.value for each in by_part) == pytest.approx(6)


def test_every_recorded_series_exists_here(recorded: Mapping[str, list[Value]]) -> None:
    """But those about doubtful data, MIG, clocks and what nobody holds: their inputs are not in this scene."""
    absent = {name for name, found in recorded.items() if not found}
    assert absent == {
        "cluster:honest_gpu_unattributed_seconds:rate5m",
        "gpu:honest_gpu_clock_event:ratio_rate15m",
        "gpu:honest_gpu_suspect:bool",
    }


def test_a_mig_instance_costs_its_share(tmp_path: Path) -> None:
    series = played({"mig": Node((Gpu(more={**PRICE, "honest_gpu_mig_share_ratio": Gauge(0.25, 0.25)}),))}, WELL * 20)
    cut = {key.replace('gpu="0"', 'gpu="0",gpu_instance="3"'): text for key, text in series.items()}
    query = "gpu:honest_gpu_price_per_hour:share"
    (found,) = values(tmp_path, cut, [query], 19)[query]
    assert (found.value, found.labels["gpu_instance"]) == (0.5, "3")
