"""docs/metrics.md is what the catalogue says."""

from __future__ import annotations

from pathlib import Path

from exporter.metrics.docs import page


def test_metrics_page_is_current() -> None:
    path = Path(__file__).parents[2] / "docs" / "metrics.md"
    assert path.read_text() == page(), "run: make docs"
