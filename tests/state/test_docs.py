"""The page of states is that of the rules."""

from __future__ import annotations

from pathlib import Path

from exporter.state.docs import page


def test_the_page_is_current() -> None:
    path = Path(__file__).parents[2] / "docs" / "states.md"
    assert path.read_text() == page(), "run: make docs"
