"""What Grafana puts in place of its variables before it asks Prometheus (its Prometheus data source, 11.x)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence


def escaped(value: str) -> str:
    """One value of a variable that can have several: escaped for a regular expression within a PromQL string."""
    return re.sub(r"[$^*{}\[\]'+?.()|]", lambda found: "\\\\" + found[0], value.replace("\\", "\\\\\\\\"))


def one_of(values: Sequence[str]) -> str:
    """Several values as a regular expression."""
    parts = [escaped(value) for value in values]
    return parts[0] if len(parts) == 1 else f"({'|'.join(parts)})"


def substituted(text: str, choices: Mapping[str, str], *, range_: str, rate_interval: str) -> str:
    """``choices``: variable -> the text that stands for it."""
    times = {"__rate_interval": rate_interval, "__range": range_}

    def value(found: re.Match[str]) -> str:
        name = found[1]
        return times[name] if name in times else choices[name]

    return re.sub(r"\$(\w+)", value, text)
