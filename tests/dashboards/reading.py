"""The committed dashboards: their panels, their queries, their variables."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).parents[2]
FOLDER = REPOSITORY / "dashboards"
NAMES = ("exporter-health", "fleet", "node-gpu", "workload")


@dataclass(frozen=True)
class Query:
    """One query of one panel, or of a variable (``ref`` is then its name)."""

    dashboard: str
    panel: str
    ref: str
    text: str
    legend: str = ""

    def __str__(self) -> str:
        return f"{self.dashboard} / {self.panel} / {self.ref}"


def dashboard(name: str) -> dict[str, Any]:
    """The document."""
    document = json.loads((FOLDER / f"{name}.json").read_text())
    assert isinstance(document, dict)
    return document


def panels(name: str) -> list[dict[str, Any]]:
    """Panels that show something, without the headings."""
    return [panel for panel in dashboard(name)["panels"] if panel["type"] != "row"]


def panel_queries(name: str) -> Iterator[Query]:
    """Every query of every panel."""
    for panel in panels(name):
        for target in panel["targets"]:
            yield Query(name, panel["title"], target["refId"], target["expr"], target["legendFormat"])


def variables(name: str) -> list[dict[str, Any]]:
    """The variables that ask Prometheus, in their order."""
    return [variable for variable in dashboard(name)["templating"]["list"] if variable["type"] == "query"]
