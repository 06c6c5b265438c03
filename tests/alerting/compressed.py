"""A minute becomes a second: the shipped rules and examples, with every duration a sixtieth of what it is.

Only durations change: how often groups are evaluated, ``for``, ``keep_firing_for``, ranges and offsets of queries, and
the waits of Alertmanager. Names, expressions, thresholds and labels stay, so what is tested is what is shipped.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

REPOSITORY = Path(__file__).parents[2]
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_WAITS = {
    "interval",
    "evaluation_interval",
    "for",
    "keep_firing_for",
    "group_wait",
    "group_interval",
    "repeat_interval",
}


def duration(text: str) -> str:
    """``15m`` -> ``15000ms``."""
    milliseconds = sum(int(count) * _SECONDS[unit] * 1000 // 60 for count, unit in re.findall(r"(\d+)([smhd])", text))
    return f"{milliseconds}ms"


def query(text: str) -> str:
    """Ranges and offsets of a PromQL expression; also inside of annotations."""
    return re.sub(r"(?<=\[)\d+[smhd](?=\])|(?<= offset )\d+[smhd]", lambda found: duration(found[0]), text)


def compressed(node: Any) -> Any:
    """A parsed YAML file."""
    if isinstance(node, dict):
        return {key: duration(str(value)) if key in _WAITS else compressed(value) for key, value in node.items()}
    if isinstance(node, list):
        return [compressed(item) for item in node]
    return query(node) if isinstance(node, str) else node


def rules(folder: Path) -> str:
    """All rule files, compressed, in this folder; what Prometheus is told to load."""
    for path in sorted((REPOSITORY / "rules").glob("*.yml")):
        (folder / path.name).write_text(yaml.safe_dump(compressed(yaml.safe_load(path.read_text())), width=1000))
    return f"{folder}/*.yml"


def example(name: str) -> Any:
    """A configuration of docs/examples, compressed."""
    return compressed(yaml.safe_load((REPOSITORY / "docs" / "examples" / name).read_text()))
