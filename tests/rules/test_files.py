"""The rule files: they load, are named as they should be, name only what is exported, and every alert is complete."""

from __future__ import annotations

import re

import pytest

from exporter.metrics.catalogue import groups
from exporter.metrics.own import OwnState
from tests.rules.promtool import ALERTS, FILES, RULES, promtool, rules

pytestmark = pytest.mark.system

RUNBOOKS = RULES.parent / "docs" / "runbooks"
PROMISED = {
    "Divergence",
    "IdleAllocated",
    "AllocatedNoProcess",
    "SuspectedHang",
    "Straggler",
    "InputStarved",
    "CommunicationBound",
    "Throttled",
    "LowTensorUse",
    "ProfilingLost",
    "ProfilingStuck",
    "Missing",
    "Xid",
    "ExporterDown",
    "ExporterAbsent",
    "ExporterSlow",
    "Stale",
    "Unattributed",
    "PoolTooSmall",
}
GPUS_OF_SOMEBODY = {"GPU {{ $labels.gpu }}", "Held by", "{{ $labels.uuid }}"}


def test_rules_load() -> None:
    done = promtool("check", "rules", "--lint-fatal", *map(str, FILES))
    assert done.returncode == 0, done.stdout + done.stderr


def test_all_promised_alerts_exist() -> None:
    assert {f"HonestGpu{name}" for name in PROMISED} <= set(ALERTS)


def test_recorded_series_are_level_metric_operation() -> None:
    """Thresholds are no aggregates, and have no level."""
    levels = "gpu|instance|model|cluster|namespace|namespace_pod|job_id|workload"
    operations = r"(ratio|median)_rate\d+m|rate\d+m|increase1h|info|bool|share|sum|group"
    for name in {str(rule["record"]) for rule in rules("record")} - {"honest_gpu:threshold"}:
        assert re.fullmatch(rf"({levels}):honest_gpu_[a-z0-9_]+:({operations})", name), name


def unknown(text: str) -> set[str]:
    """Names in a text that neither the exporter nor a rule makes."""
    known = {family.series_name for group in groups(OwnState()) for family in group.families}
    known |= {str(rule["record"]) for rule in rules("record")}
    return set(re.findall(r"\b(?:\w+:)*honest_gpu[a-z0-9_]*(?::\w+)*", text)) - known


def test_rules_name_only_families_and_recorded_series_that_exist() -> None:
    for kind in ("alert", "record"):
        for rule in rules(kind):
            assert unknown(str(rule["expr"]) + str(rule.get("annotations", ""))) == set(), rule[kind]


def test_every_alert_is_complete() -> None:
    for rule in rules("alert"):
        annotations, labels = rule["annotations"], rule["labels"]
        assert set(annotations) == {"summary", "description", "runbook_url"}, rule["alert"]
        assert annotations["runbook_url"] == f"docs/runbooks/{rule['alert']}.md"
        assert labels["severity"] in {"critical", "warning", "info"}
        assert labels["kind"] in {"efficiency", "health"}
        assert ("input" in labels) == (labels["kind"] == "efficiency")
        assert "Likely" in annotations["description"] or "the reason" in annotations["description"], rule["alert"]
        if labels["kind"] == "efficiency" and rule["alert"] != "HonestGpuPoolTooSmall":
            assert all(piece in annotations["description"] for piece in GPUS_OF_SOMEBODY), rule["alert"]


def test_every_alert_has_a_runbook_and_every_runbook_an_alert() -> None:
    assert {path.stem for path in RUNBOOKS.glob("*.md")} == set(ALERTS)
    for path in RUNBOOKS.glob("*.md"):
        text = path.read_text()
        assert text.startswith(f"# {path.stem}\n")
        assert "**Check.**" in text
        assert "**Do.**" in text
        assert unknown(text) == set()
        assert set(re.findall(r"HonestGpu\w+", text)) <= set(ALERTS)


def test_efficiency_alerts_outlive_a_short_absence_and_health_alerts_do_not() -> None:
    """HonestGpuExporterAbsent fires after 5 minutes, and takes over within these 15."""
    for rule in rules("alert"):
        expected = "15m" if rule["labels"]["kind"] == "efficiency" else None
        assert rule.get("keep_firing_for") == expected, rule["alert"]
