"""One colour a thing, on all dashboards: Okabe and Ito's, a few more, and greys for doing nothing.

Grafana has one colour for light and dark: each differs from both backgrounds, and those of one panel from one another
for every kind of colour vision (a test computes both). Names are always drawn too.
"""

from __future__ import annotations

from collections.abc import Mapping

GREEN, ORANGE, VERMILLION, BLUE, SKY = "#009E73", "#E69F00", "#D55E00", "#0072B2", "#56B4E9"
PURPLE, BROWN, OCHRE, WINE, LIGHT_GREEN = "#7A35C9", "#734D28", "#BFA043", "#99364E", "#7CBF7C"
GREY, LIGHT_GREY, DARK_GREY, DUSK = "#8C959F", "#A9B1B9", "#646D76", "#5F4B73"
TEXT = "text"
"""Grafana's name for the theme's text colour: dark on light, light on dark."""

CLAIMED, LIMIT = "claimed", "limit"
"""What lines over the areas are called, by the first word."""

PARTS: Mapping[str, str] = {
    "working": GREEN,
    "stalled": ORANGE,
    "hollow": VERMILLION,
    "unexplained": PURPLE,
    "idle": GREY,
}

LIMITERS: Mapping[str, str] = {
    "tensor": GREEN,
    "dram": BLUE,
    "fp16": SKY,
    "fp32": BROWN,
    "fp64": ORANGE,
    "integer": PURPLE,
    "none": GREY,
}

STATES: Mapping[str, str] = {
    "tensor_bound": GREEN,
    "pipe_bound": LIGHT_GREEN,
    "dram_bound": BLUE,
    "mixed": SKY,
    "latency_bound": OCHRE,
    "launch_bound": VERMILLION,
    "suspected_hang": ORANGE,
    "input_starved": BROWN,
    "transfer_bound": WINE,
    "communication_bound": PURPLE,
    "process_idle": GREY,
    "allocated_no_process": DARK_GREY,
    "unallocated": LIGHT_GREY,
    "unknown": DUSK,
}

RANKED: Mapping[str, str] = {"best": GREEN, "median": BLUE, "worst": VERMILLION}

RESOURCES: Mapping[str, str] = {"cpu": BLUE, "io": ORANGE, "memory": PURPLE}

GPUS: Mapping[str, str] = {
    f"GPU {number}(?! \\d)": colour
    for number, colour in enumerate((SKY, BLUE, ORANGE, GREEN, PURPLE, VERMILLION, BROWN, OCHRE))
}
"""For lines called GPU 0, GPU 1, ...; not GPU 0 1, GPU 0 2, ...: instances of one board would share its colour."""
