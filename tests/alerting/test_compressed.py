"""The transformation that lets a quarter of an hour pass in seconds changes durations, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from tests.alerting.compressed import REPOSITORY, compressed, duration, query

pytestmark = pytest.mark.system

FILES = [*sorted((REPOSITORY / "rules").glob("*.yml")), REPOSITORY / "docs" / "examples" / "alertmanager.yml"]


def test_a_minute_becomes_a_second() -> None:
    assert [duration(text) for text in ("1m", "15m", "30s", "1h", "0m")] == [
        "1000ms",
        "15000ms",
        "500ms",
        "60000ms",
        "0ms",
    ]
    text = 'rate(a:b:ratio_rate5m[5m]) > 5 unless x{xid="5m"} offset 10m'
    assert query(text) == 'rate(a:b:ratio_rate5m[5000ms]) > 5 unless x{xid="5m"} offset 10000ms'


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_only_durations_change(path: Path) -> None:
    before = yaml.safe_load(path.read_text())

    def bare(node: object) -> str:
        return re.sub(r"\d+(ms|[smhd])\b", "#", yaml.safe_dump(node, width=10**6))

    assert bare(compressed(before)) == bare(before)
    assert compressed(before) != before
