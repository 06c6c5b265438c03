"""Alerts and recorded series at given minutes, by Prometheus's own rule engine (promtool test rules)."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

RULES = Path(__file__).parents[2] / "rules"
FILES = sorted(RULES.glob("*.yml"))


def promtool(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run it; skips where it is not installed."""
    binary = shutil.which("promtool")
    if binary is None:
        pytest.skip("promtool is not installed (Debian package prometheus)")
    return subprocess.run([binary, *arguments], capture_output=True, text=True, check=False)


def rules(kind: str) -> list[Mapping[str, Any]]:
    """All rules that have the key ``kind``: alert or record."""
    groups = [group for path in FILES for group in yaml.safe_load(path.read_text())["groups"]]
    return [rule for group in groups for rule in group["rules"] if kind in rule]


ALERTS = sorted({str(rule["alert"]) for rule in rules("alert")})


def behind_alerts(folder: Path, files: Iterable[Path] = FILES) -> list[Path]:
    """The rule files, less recorded series that no alert refers to: evaluating all takes ten times as long."""
    texts = [str(rule["expr"]) + str(rule["annotations"]) for rule in rules("alert")]
    needed: set[str] = set()
    while found := {r["record"] for r in rules("record") if any(r["record"] in text for text in texts)} - needed:
        needed |= found
        texts = [str(rule["expr"]) for rule in rules("record") if rule["record"] in found]
    written = []
    for path in files:
        groups = yaml.safe_load(path.read_text())["groups"]
        for group in groups:
            group["rules"] = [rule for rule in group["rules"] if "alert" in rule or rule["record"] in needed]
        kept = [group for group in groups if group["rules"]]
        if kept:
            written.append(folder / path.name)
            written[-1].write_text(json.dumps({"groups": kept}))
    return written


@dataclass(frozen=True, slots=True)
class Fired:
    """One alert that fires at one minute."""

    minute: int
    name: str
    labels: Mapping[str, str]
    description: str


def fired(
    folder: Path, series: Mapping[str, str], minutes: Iterable[int], files: Iterable[Path] = FILES
) -> list[Fired]:
    """What fires: promtool is told that nothing does, and lists what did."""
    asked = [{"eval_time": f"{minute}m", "alertname": name, "exp_alerts": []} for minute in minutes for name in ALERTS]
    done = _test(folder, series, behind_alerts(folder, files), alert_rule_test=asked)
    found: list[Fired] = []
    minute = 0
    for line in (done.stdout + done.stderr).splitlines():
        if told := re.search(r"alertname: \w+, time: (?:(\d+)h)?(?:(\d+)m)?", line):
            minute = 60 * int(told[1] or 0) + int(told[2] or 0)
        elif "Labels:{" in line:
            labels = _labels(line)
            found.append(Fired(minute, labels.pop("alertname"), labels, ""))
        elif "Annotations:{" in line:
            last = found.pop()
            found.append(Fired(last.minute, last.name, last.labels, _labels(line)["description"]))
    assert bool(found) == (done.returncode != 0), done.stdout + done.stderr
    return found


@dataclass(frozen=True, slots=True)
class Value:
    """One series of an answer."""

    labels: Mapping[str, str]
    value: float


def values(folder: Path, series: Mapping[str, str], queries: Iterable[str], minute: int) -> dict[str, list[Value]]:
    """Query -> what it gives: promtool is told that it gives something else, and says what it gave."""
    wrong = [{"labels": "never", "value": 0}]
    asked = [{"expr": query, "eval_time": f"{minute}m", "exp_samples": wrong} for query in queries]
    done = _test(folder, series, FILES, promql_expr_test=asked)
    answers = re.findall(r'expr: "(.*?)", time: .*?\n.*?\n\s+got: ?(.*)', done.stdout + done.stderr)
    return {
        query.replace('\\"', '"'): [
            Value({key: label for key, label in _labels(labels).items() if key != "__name__"}, float(value))
            for labels, value in re.findall(r"\{(.*?)\} ([-+.\dENa]+)", got)
        ]
        for query, got in answers
    }


def _test(folder: Path, series: Mapping[str, str], files: Sequence[Path], **asked: Any) -> Any:
    test = {
        "rule_files": [str(path) for path in files],
        "evaluation_interval": "1m",
        "tests": [
            {
                "interval": "1m",
                "input_series": [{"series": key, "values": text} for key, text in series.items()],
                **asked,
            }
        ],
    }
    path = folder / "test.yml"
    path.write_text(json.dumps(test))
    return promtool("test", "rules", str(path))


def _labels(line: str) -> dict[str, str]:
    return {key: value.replace('\\"', '"') for key, value in re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', line)}
