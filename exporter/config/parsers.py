"""From the text of an option to its value. Each raises ValueError saying what was expected."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

_DURATION = re.compile(r"(?:(?P<h>\d+)h)?(?:(?P<m>\d+)m)?(?:(?P<s>\d+(?:\.\d+)?)s)?(?:(?P<ms>\d+)ms)?\Z")
_BARE = re.compile(r"\d+(?:\.\d+)?\Z")
_TRUE, _FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")


def text(value: str) -> str:
    """As it is."""
    return value


def path(value: str) -> Path:
    """A file or folder; not looked at here."""
    if "\0" in value:
        raise ValueError("expected a path without a NUL character")
    return Path(value)


def boolean(value: str) -> bool:
    """true or false."""
    lowered = value.lower()
    if lowered in _TRUE or lowered in _FALSE:
        return lowered in _TRUE
    raise ValueError("expected true or false")


def duration(value: str) -> float:
    """Seconds, from ``1s``, ``100ms``, ``10m``, ``1h30m``, or a bare number of seconds; above 0."""
    match = _DURATION.match(value)
    if _BARE.match(value):
        seconds = float(value)
    elif match and any(match.groupdict().values()):
        hours, minutes, rest, milli = (float(match[unit] or 0) for unit in ("h", "m", "s", "ms"))
        seconds = hours * 3600 + minutes * 60 + rest + milli / 1000
    else:
        raise ValueError("expected a duration such as 1s, 500ms, 10m or 1h30m")
    if seconds <= 0:
        raise ValueError("expected a duration above 0")
    return seconds


def speed(value: str) -> float | None:
    """Times real time; None for ``max``: as fast as possible."""
    if value == "max":
        return None
    factor = _number(value)
    if factor is None or not 0.001 <= factor <= 10_000:
        raise ValueError("expected max or a number from 0.001 to 10000, 1 being real time")
    return factor


def whole_number(low: int, high: int) -> Callable[[str], int]:
    """A parser for whole numbers of a range, both ends included."""

    def parse(value: str) -> int:
        if not re.fullmatch(r"[0-9]{1,9}", value) or not low <= int(value) <= high:
            raise ValueError(f"expected a whole number from {low} to {high}")
        return int(value)

    return parse


def one_of(*choices: str) -> Callable[[str], str]:
    """A parser for one of these words."""

    def parse(value: str) -> str:
        if value not in choices:
            raise ValueError(f"expected {', '.join(choices[:-1])} or {choices[-1]}")
        return value

    return parse


def url_path(value: str) -> str:
    """The path of a page: begins with a slash, has no query."""
    if not re.fullmatch(r"/[A-Za-z0-9._~/-]*", value) or value.startswith("/-/"):
        raise ValueError("expected a path such as /metrics; /-/ is reserved for the probes")
    return value


def glob(value: str) -> str:
    """A pattern over metric names."""
    if not re.fullmatch(r"[a-zA-Z0-9_:*?\[\]!-]+", value):
        raise ValueError("expected a metric name, with * and ? as wildcards, such as honest_gpu_ecc_*")
    return value


def resource(value: str) -> str:
    """A pattern over names of Kubernetes resources."""
    if not re.fullmatch(r"[a-zA-Z0-9._*?-]+/[a-zA-Z0-9._*?-]+", value):
        raise ValueError("expected a resource name, with * and ? as wildcards, such as nvidia.com/gpu*")
    return value


def kubernetes_label(value: str) -> str:
    """The name of a label of Kubernetes objects: PREFIX/NAME or NAME."""
    if not re.fullmatch(
        r"(?:[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?", value
    ):
        raise ValueError("expected a label name, such as app.kubernetes.io/name or team")
    return value


def node_name(value: str) -> str:
    """The name of a Kubernetes node; empty is none."""
    if not re.fullmatch(r"(?:[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?)?", value):
        raise ValueError("expected a node name as printed by kubectl get nodes")
    return value


def price(value: str) -> tuple[str, float]:
    """(pattern over models, price); a bare price is for all models."""
    model, _, amount = value.rpartition("=")
    number = _number(amount)
    if number is None or not 0 <= number < 1e6:
        raise ValueError("expected a price such as 2.50, or a model pattern and a price such as *H100*=2.50")
    return model or "*", number


def currency(value: str) -> str:
    """A currency code."""
    if not re.fullmatch(r"[A-Z]{3}", value):
        raise ValueError("expected a currency code such as EUR")
    return value


def named_ratio(value: str) -> tuple[str, float]:
    """(name, ratio)."""
    name, _, amount = value.partition("=")
    number = _number(amount)
    if not re.fullmatch(r"[a-z_]+", name) or number is None or not 0 <= number <= 1:
        raise ValueError("expected a threshold's name and a ratio from 0 to 1, such as sm_launch=0.3")
    return name, number


def _number(value: str) -> float | None:
    """None for what is not one."""
    try:
        return float(value)
    except ValueError:
        return None
