"""A whole dashboard: variables, links to the others, rows of panels, and its JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from grafana_foundation_sdk.builders import dashboard
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import dashboard as model

from dashboards.build.panels import Panel
from dashboards.build.variables import Variable, data_source

TAG = "honest-gpu"


@dataclass(frozen=True, slots=True)
class Row:
    """Panels under one heading; they flow from left to right, and the heights in one line are equal."""

    title: str
    panels: Sequence[Panel]


@dataclass(frozen=True, slots=True)
class Page:
    """One dashboard. ``since``: the time range that it opens with, such as now-1h; ``refresh``: how often it asks."""

    uid: str
    title: str
    says: str
    since: str
    variables: Sequence[Variable]
    rows: Sequence[Row]
    refresh: str = "1m"


def _links() -> dashboard.DashboardLink:
    """To all dashboards with our tag; variables of the same name and the time range go along."""
    link = dashboard.DashboardLink("Honest GPU").type(model.DashboardLinkType.DASHBOARDS).tags([TAG])
    return link.icon("dashboard").as_dropdown(False).include_vars(True).keep_time(True).tooltip("")


def built(page: Page) -> model.Dashboard:
    """Ids are counted from 1, headings included."""
    made = dashboard.Dashboard(page.title).uid(page.uid).description(page.says).tags([TAG]).timezone("browser")
    made.time(page.since, "now").refresh(page.refresh).tooltip(model.DashboardCursorSync.CROSSHAIR).link(_links())
    made.with_variable(data_source())
    for variable in page.variables:
        made.with_variable(variable)
    number = 0
    for row in page.rows:
        number += 1
        made.with_row(dashboard.Row(row.title).id(number))
        for panel in row.panels:
            number += 1
            made.with_panel(panel.id(number))
    return made.build()


def written(page: Page) -> str:
    """The file's text."""
    return json.dumps(built(page), cls=JSONEncoder, indent=2, ensure_ascii=False) + "\n"
