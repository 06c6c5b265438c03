"""Colours as numbers: contrast (WCAG 2), and how different two look, also to the colour-blind."""

from __future__ import annotations

from collections.abc import Sequence

BACKGROUNDS = {"light": "#ffffff", "dark": "#181b1f"}
"""Of Grafana's panels."""

Matrix = tuple[tuple[float, float, float], ...]

VISION: dict[str, Matrix] = {
    "usual": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "tritanopia": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}
"""On linear RGB, at full severity: Machado, Oliveira and Fernandes, 2009."""

_TO_XYZ: Matrix = ((0.4124, 0.3576, 0.1805), (0.2126, 0.7152, 0.0722), (0.0193, 0.1192, 0.9505))
_WHITE = (0.95047, 1.0, 1.08883)


def _linear(colour: str) -> list[float]:
    """sRGB #rrggbb as linear light, 0..1."""
    shares = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    return [share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares]


def _times(matrix: Matrix, vector: Sequence[float]) -> list[float]:
    return [sum(a * b for a, b in zip(row, vector, strict=True)) for row in matrix]


def contrast(one: str, other: str) -> float:
    """From 1 (the same) to 21 (black on white)."""
    dark, light = sorted(_times(_TO_XYZ, _linear(colour))[1] for colour in (one, other))
    return (light + 0.05) / (dark + 0.05)


def _lab(colour: str, vision: str) -> tuple[float, float, float]:
    """CIELAB of what is seen."""
    seen = [min(1.0, max(0.0, share)) for share in _times(VISION[vision], _linear(colour))]
    parts = [value / white for value, white in zip(_times(_TO_XYZ, seen), _WHITE, strict=True)]
    x, y, z = (part ** (1 / 3) if part > 0.008856 else 7.787 * part + 16 / 116 for part in parts)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def difference(one: str, other: str, vision: str = "usual") -> float:
    """CIE76 delta E: 2 can just be seen side by side, 10 at a glance."""
    squares = ((a - b) ** 2 for a, b in zip(_lab(one, vision), _lab(other, vision), strict=True))
    return float(sum(squares) ** 0.5)
