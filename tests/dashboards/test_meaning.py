"""What queries of panels answer on made-up series, by Prometheus's own engine: means, hours, holders, MIG."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.dashboards.grafana import substituted
from tests.dashboards.reading import panel_queries, variables
from tests.rules.promtool import values

NODE = 'job="honest-gpu-exporter",instance="n:9836"'


def device(gpu: int, instance: str = "") -> str:
    """Labels of a GPU, or of a MIG instance on it."""
    return f'{NODE},gpu="{gpu}",uuid="GPU-{gpu}"' + (f',gpu_instance="{instance}"' if instance else "")


def parts(labels: str, observed: str, **of: str) -> dict[str, str]:
    """Counters of a device: seconds by part, and for how long they were observed."""
    found = {f'honest_gpu_time_seconds_total{{{labels},part="{part}"}}': text for part, text in of.items()}
    return found | {f'honest_gpu_observed_seconds_total{{{labels},of="parts"}}': observed}


def ask(
    folder: Path, series: Mapping[str, str], minute: int, where: tuple[str, str], range_: str = "1h", **choices: str
) -> dict[str, list[float]]:
    """The answers of a panel, ``where`` (dashboard, title), by legend or else by letter of the query."""
    name, title = where
    all_of = {variable["name"]: "n:9836" if variable["name"] == "node" else ".*" for variable in variables(name)}
    queries = {
        substituted(query.text, all_of | choices, range_=range_, rate_interval="5m"): query
        for query in panel_queries(name)
        if query.panel == title
    }
    assert queries, title
    answers = values(folder, series, queries, minute)
    assert set(answers) <= set(queries)
    return {
        query.legend if query.legend not in ("", "__auto") else query.ref: [each.value for each in answers[text]]
        for text, query in queries.items()
        if answers.get(text)
    }


def test_a_rank_answers_for_the_time_it_was_held_only(tmp_path: Path) -> None:
    """The GPU idled for an hour in other hands, then worked half of the time for this pod."""
    held = f'{device(0)},namespace="ml",sharing="exclusive"'
    series = {
        **parts(device(0), "0+60x120", working="0x60 30+30x59", idle="0+60x60 3630+30x59"),
        f'honest_gpu_allocation_info{{{held},pod="before"}}': "1x59 stale",
        f'honest_gpu_allocation_info{{{held},pod="train"}}': "_x60 1x60",
    }
    answers = ask(tmp_path, series, 120, ("workload", "Ranks"), range_="2h", pod="train")
    assert answers["B"] == [pytest.approx(0.5, abs=0.05)], "working"
    assert answers["E"] == [pytest.approx(0.5, abs=0.05)], "idle"


@pytest.mark.parametrize(("peers", "expected"), [(("54", "54", "18"), [1 / 3, 1.0, 1.0]), (("0.1", "0.1", "54"), [])])
def test_stragglers_are_told_only_while_their_peers_do_something(
    tmp_path: Path, peers: tuple[str, ...], expected: list[float]
) -> None:
    series: dict[str, str] = {}
    for gpu, seconds in enumerate(peers):
        series[f"honest_gpu_sm_active_seconds_total{{{device(gpu)}}}"] = f"0+{seconds}x30"
        series[f'honest_gpu_observed_seconds_total{{{device(gpu)},of="sm"}}'] = "0+60x30"
        series[f'honest_gpu_allocation_info{{{device(gpu)},job_id="7",sharing="exclusive"}}'] = "1x30"
    answers = ask(tmp_path, series, 30, ("workload", "Stragglers"))
    found = answers.get("{{instance}} GPU {{gpu}} {{gpu_instance}}", [])
    assert sorted(value for value in found if not math.isnan(value)) == pytest.approx(expected, abs=0.01)


def test_the_claim_of_the_fleet_weighs_gpus_by_their_time(tmp_path: Path) -> None:
    """One GPU claimed busy for 60 minutes, another one idle that was there for the last 30."""
    series: dict[str, str] = {}
    for gpu, busy, there in ((0, "0+60x60", "0+60x60"), (1, "_x30 0x30", "_x30 0+60x30")):
        series[f'honest_gpu_info{{{device(gpu)},model="H100"}}'] = "1x60" if gpu == 0 else "_x30 1x30"
        series[f"honest_gpu_busy_seconds_total{{{device(gpu)}}}"] = busy
        series[f'honest_gpu_observed_seconds_total{{{device(gpu)},of="claim"}}'] = there
    assert ask(tmp_path, series, 60, ("fleet", "Claimed"))["A"] == [pytest.approx(0.667, abs=0.03)]


def test_gpu_hours_are_those_of_the_range(tmp_path: Path) -> None:
    series: dict[str, str] = {}
    for gpu in range(2):
        series |= parts(device(gpu), "0+60x130", working="0+45x130", idle="0+15x130")
        series[f'honest_gpu_info{{{device(gpu)},model="H100"}}'] = "1x130"
    answers = ask(tmp_path, series, 125, ("fleet", "GPU-hours by part"), range_="2h")
    assert sorted(answers["{{part}}"]) == [pytest.approx(1.0, rel=0.06), pytest.approx(3.0, rel=0.06)]


def test_instances_of_a_board_are_one_gpu_of_the_graph(tmp_path: Path) -> None:
    """Parts of MIG instances are their mean, end at 1, and no claim is made up for them."""
    series = {
        **parts(device(0, "1"), "0+60x30", working="0+60x30", idle="0x30"),
        **parts(device(0, "2"), "0+60x30", working="0x30", idle="0+60x30"),
        f"honest_gpu_power_watts{{{device(0)}}}": "300x30",
    }
    answers = ask(tmp_path, series, 30, ("node-gpu", "GPU $gpu: parts, and the driver's claim"))
    assert answers == {"working": [pytest.approx(0.5)], "idle": [pytest.approx(0.5)]}


def test_an_exporter_that_went_down_is_told(tmp_path: Path) -> None:
    there = 'job="honest-gpu-exporter",instance="m:9836"'
    series = {
        f"up{{{NODE}}}": "1x30",
        f'honest_gpu_build_info{{{NODE},version="1"}}': "1x30",
        f"up{{{there}}}": "1x20 0x10",
        f'honest_gpu_build_info{{{there},version="1"}}': "1x20 stale",
        'up{job="another",instance="x:1"}': "0x30",
    }
    for title, expected in (("Scraped", 1.0), ("Not answering", 1.0)):
        assert ask(tmp_path, series, 30, ("exporter-health", title), node=".*")["A"] == [expected], title


def test_a_board_in_mig_mode_is_not_a_gpu_without_profiling(tmp_path: Path) -> None:
    """Its instances are measured, and one of them is lost; another board has never had any."""
    series: dict[str, str] = {}
    for labels, state in (
        (device(0), "unsupported"),
        (device(0, "1"), "ok"),
        (device(0, "2"), "stale"),
        (device(1), "unsupported"),
        (device(2), "ok"),
    ):
        series[f'honest_gpu_info{{{labels},model="H100"}}'] = "1x10"
        series[f'honest_gpu_profiling_state{{{labels},state="ok"}}'] = "1x10" if state == "ok" else "0x10"
        if state != "ok":
            series[f'honest_gpu_profiling_state{{{labels},state="{state}"}}'] = "1x10"
    answers = ask(tmp_path, series, 10, ("exporter-health", "Profiling that is not ok"), node=".*")
    assert answers == {"{{state}}": [1.0, 1.0], "in all": [2.0]}
