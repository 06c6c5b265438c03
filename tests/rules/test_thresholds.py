"""Thresholds: one place, one number a cluster, and an alert that says so when they are missing."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.rules.cases import TINY
from tests.rules.nodes import WELL, WRONG, Node, played
from tests.rules.promtool import FILES, fired, rules

pytestmark = pytest.mark.system

THRESHOLDS = next(path for path in FILES if path.name == "thresholds.yml")
SET = "{} * cluster:honest_gpu_up:group"


def named() -> Mapping[str, str]:
    """Threshold -> expression."""
    return {
        rule["labels"]["name"]: rule["expr"] for rule in rules("record") if rule["record"] == "honest_gpu:threshold"
    }


def with_thresholds(folder: Path, **changed: str) -> list[Path]:
    """The rule files, with other expressions for these thresholds."""
    text = THRESHOLDS.read_text()
    for name, expression in changed.items():
        text, found = re.subn(rf"(name: {name}}}, expr: )[^}}]*}}", rf"\g<1>'{expression}'}}", text)
        assert found == 1
    path = folder / "changed.yml"
    path.write_text(text)
    return [path if each == THRESHOLDS else each for each in FILES]


def test_every_threshold_is_used_and_every_one_that_is_used_exists() -> None:
    text = "".join(str(rule["expr"]) for kind in ("alert", "record") for rule in rules(kind))
    assert set(re.findall(r'honest_gpu:threshold\{name="(\w+)"\}', text)) == set(named())


def test_no_alert_has_a_number_of_its_own() -> None:
    """Comparisons with 0 and 1 are about flags and about existence."""
    for rule in rules("alert"):
        numbers = set(re.findall(r"[<>=]=?\s*(\d[\d.]*)", rule["expr"]))
        assert numbers <= {"0", "1"}, rule["alert"]


def test_a_threshold_is_changed_in_one_place(tmp_path: Path) -> None:
    """Claimed 90 %: below a limit of 95 %."""
    series = played({"tiny": Node((TINY,))}, WRONG * 60)
    files = with_thresholds(tmp_path, divergence_busy=SET.format(0.95))
    assert [alert.name for alert in fired(tmp_path, series, [59])] == ["HonestGpuDivergence"]
    assert fired(tmp_path, series, [59], files) == []


def test_a_cluster_can_have_its_own_number(tmp_path: Path) -> None:
    series = played({"east": Node((TINY,)), "west": Node((TINY,))}, WRONG * 60)
    east = 'cluster:honest_gpu_up:group{cluster="east"}'
    files = with_thresholds(tmp_path, divergence_busy=f"0.95 * {east} or {SET.format(0.7)}")
    assert [alert.labels["cluster"] for alert in fired(tmp_path, series, [59], files)] == ["west"]


def test_clusters_need_no_name(tmp_path: Path) -> None:
    series = played({"tiny": Node((TINY,))}, WRONG * 60)
    unnamed = {key.replace('cluster="tiny",', ""): text for key, text in series.items()}
    (alert,) = fired(tmp_path, unnamed, [59])
    assert (alert.name, alert.labels.get("cluster")) == ("HonestGpuDivergence", None)


@pytest.mark.parametrize("plan", [WELL, WRONG])
def test_an_alert_says_that_all_are_silent_without_thresholds(tmp_path: Path, plan: str) -> None:
    series = played({"tiny": Node((TINY,))}, plan * 60)
    without = [path for path in FILES if path != THRESHOLDS]
    assert [alert.name for alert in fired(tmp_path, series, [59], without)] == ["HonestGpuThresholdsMissing"]
