"""Colours mean the same on all panels, and are told apart, on light and dark, by the colour-blind too."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest

from tests.dashboards.colours import BACKGROUNDS, VISION, contrast, difference
from tests.dashboards.reading import NAMES, panels


def _colours(panel: dict[str, Any]) -> dict[str, str]:
    """What the panel gives a colour of its own: a pattern of names -> the colour. Not the theme's colour of text."""
    return {
        override["matcher"]["options"]: change["value"]["fixedColor"]
        for override in panel["fieldConfig"]["overrides"]
        for change in override["properties"]
        if change["id"] == "color" and change["value"]["fixedColor"] != "text"
    }


def _fixed(panel: dict[str, Any]) -> str:
    """The colour of all that has none of its own."""
    colour = panel["fieldConfig"]["defaults"].get("color", {})
    return str(colour["fixedColor"]) if colour.get("mode") == "fixed" else "text"


ALL = [(name, panel) for name in NAMES for panel in panels(name)]


def test_the_measures_are_right() -> None:
    """Against figures that are published."""
    assert contrast("#000000", "#ffffff") == pytest.approx(21.0)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)
    assert difference("#ff0000", "#00ff00") == pytest.approx(170.6, abs=0.5)
    assert difference("#00aa00", "#aa7700", "deuteranopia") < 0.5 * difference("#00aa00", "#aa7700")


def test_a_thing_has_one_colour_everywhere() -> None:
    seen: dict[str, str] = {}
    for _, panel in ALL:
        for thing, colour in _colours(panel).items():
            assert seen.setdefault(thing, colour) == colour, panel["title"]
    assert len(seen) > 20


def test_every_colour_is_seen_on_light_and_on_dark() -> None:
    used = {colour for _, panel in ALL for colour in (*_colours(panel).values(), _fixed(panel))} - {"text"}
    low = {
        (colour, theme): round(contrast(colour, background), 2)
        for colour in used
        for theme, background in BACKGROUNDS.items()
        if contrast(colour, background) < 2
    }
    assert not low


@pytest.mark.parametrize("vision", VISION)
def test_colours_of_one_panel_are_told_apart(vision: str) -> None:
    close = {
        (panel["title"], one, other): round(difference(colours[one], colours[other], vision), 1)
        for _, panel in ALL
        for colours in [_colours(panel)]
        for one, other in combinations(colours, 2)
        if difference(colours[one], colours[other], vision) < 10
    }
    assert not close
