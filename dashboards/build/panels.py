"""Panels: the few kinds in use, each with a unit, a description, and a text for when there is nothing to show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from grafana_foundation_sdk.builders import bargauge, common, dashboard, heatmap, prometheus, stat, table, timeseries
from grafana_foundation_sdk.models import common as shapes
from grafana_foundation_sdk.models import dashboard as model
from grafana_foundation_sdk.models.heatmap import HeatmapColorMode
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from dashboards.build.palette import CLAIMED, LIMIT, SKY, TEXT
from dashboards.build.promql import CLUSTER

SOURCE = model.DataSourceRef(type_val="prometheus", uid="${datasource}")
TABLE = PromQueryFormat.TABLE
HEATMAP = PromQueryFormat.HEATMAP

Panel = timeseries.Panel | stat.Panel | table.Panel | heatmap.Panel | bargauge.Panel
P = TypeVar("P", timeseries.Panel, stat.Panel, table.Panel, heatmap.Panel, bargauge.Panel)


@dataclass(frozen=True, slots=True)
class Query:
    """One query. ``instant``: at the end of the time range only."""

    expr: str
    legend: str = ""
    instant: bool = False
    form: PromQueryFormat = PromQueryFormat.TIME_SERIES


def threshold(name: str, legend: str = f"{LIMIT} of the alert") -> Query:
    """The number that an alert compares with: a dashed line."""
    return Query(f'max(honest_gpu:threshold{{{CLUSTER}, name="{name}"}})', legend)


@dataclass(frozen=True, slots=True)
class Text:
    """What a panel says. ``blind``: what it cannot tell; ``empty``: why there may be nothing to show.

    ``brief``: the same in a few words, for numbers and bars, which do not wrap a text; ``empty`` is then described.
    """

    title: str
    says: str
    blind: str
    empty: str
    brief: str = ""


@dataclass(frozen=True, slots=True)
class Size:
    """In Grafana's grid of 24 columns."""

    width: int = 12
    height: int = 8


HALF, THIRD, QUARTER, SMALL = Size(), Size(8), Size(6), Size(4, 4)

MINIMAL = "Or the exporters run with --metrics.profile=minimal."
"""Ends the texts of panels whose metrics that profile leaves out."""

GPU_HOURS = "suffix:GPU-h"
"""Not Grafana's unit h: it turns 200 hours into weeks."""


def dress(panel: P, text: Text, unit: str, queries: Sequence[Query], size: Size) -> P:
    """What all kinds have: texts, unit, queries, size."""
    why = f"\n\nWithout a value: {text.empty}" if text.brief else ""
    panel.title(text.title).description(f"{text.says}\n\nCannot tell: {text.blind}{why}")
    panel.unit(unit).no_value(text.brief or text.empty).datasource(SOURCE).span(size.width).height(size.height)
    for number, query in enumerate(queries):
        target = prometheus.Dataquery().expr(query.expr).ref_id(chr(ord("A") + number)).datasource(SOURCE)
        target.format(query.form).legend_format(query.legend or "__auto")
        panel.with_target(target.instant() if query.instant else target.range())
    return panel


_DASHED = model.DynamicConfigValue("custom.lineStyle", {"fill": "dash", "dash": [8, 4]})


def _fixed(colour: str) -> dict[str, str]:
    return {"mode": "fixed", "fixedColor": colour}


def _colours(panel: P, colours: Mapping[str, str]) -> P:
    """A fixed colour for the series whose name starts with this word."""
    for name, colour in colours.items():
        panel.override_by_regexp(f"/^{name}\\b/", [model.DynamicConfigValue("color", _fixed(colour))])
    return panel


def lines(
    text: Text,
    unit: str,
    *queries: Query,
    size: Size = HALF,
    colours: Mapping[str, str] | None = None,
    stacked: bool = False,
    low: float | None = 0.0,
    high: float | None = None,
    points: int | None = None,
    dashed: str = "",
) -> timeseries.Panel:
    """Lines, or areas on one another.

    ``points``: at most that many, for queries over the whole fleet. ``dashed``: a word in the names of lines to dash.
    """
    panel = dress(timeseries.Panel(), text, unit, queries, size)
    panel.line_width(1).fill_opacity(75 if stacked else 0).show_points(shapes.VisibilityMode.NEVER)
    panel.legend(
        common.VizLegendOptions()
        .show_legend(True)
        .display_mode(shapes.LegendDisplayMode.LIST)
        .placement(shapes.LegendPlacement.BOTTOM)
    )
    panel.tooltip(
        common.VizTooltipOptions()
        .mode(shapes.TooltipDisplayMode.MULTI)
        .sort(shapes.SortOrder.NONE if stacked else shapes.SortOrder.DESCENDING)
    )
    panel.color_scheme(dashboard.FieldColor().mode(model.FieldColorModeId.PALETTE_CLASSIC_BY_NAME))
    if stacked:
        panel.stacking(common.StackingConfig().mode(shapes.StackingMode.NORMAL).group("A"))
    if low is not None:
        panel.min(low)
    if high is not None:
        panel.max(high)
    if points is not None:
        panel.max_data_points(points).interval("1m")
    _colours(panel, colours or {})
    if dashed:
        panel.override_by_regexp(f"/\\b{dashed}\\b/", [_DASHED])
    _over(panel, f"{CLAIMED}|{LIMIT}")
    return panel


def _over(panel: timeseries.Panel, names: str) -> None:
    """A dashed line over the areas, in the colour of text, for the series whose name starts with one of these."""
    panel.override_by_regexp(
        f"/^({names})\\b/",
        [
            model.DynamicConfigValue("color", _fixed(TEXT)),
            model.DynamicConfigValue("custom.stacking", {"mode": "none", "group": "B"}),
            model.DynamicConfigValue("custom.fillOpacity", 0),
            model.DynamicConfigValue("custom.lineWidth", 2),
            _DASHED,
        ],
    )


def number(
    text: Text,
    unit: str,
    *queries: Query,
    size: Size = SMALL,
    colour: str = TEXT,
    decimals: int | None = None,
    alarm: bool = False,
    named: bool = False,
) -> stat.Panel:
    """Large numbers. ``alarm``: in ``colour`` only above 0. ``named``: with the legend, even if there is only one."""
    panel = dress(stat.Panel(), text, unit, queries, size)
    panel.reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]).values(False).fields(""))
    panel.graph_mode(shapes.BigValueGraphMode.NONE).color_mode(shapes.BigValueColorMode.VALUE)
    panel.text_mode(shapes.BigValueTextMode.VALUE_AND_NAME if named else shapes.BigValueTextMode.AUTO)
    panel.justify_mode(shapes.BigValueJustifyMode.AUTO)
    if alarm:
        steps = [model.Threshold(value=None, color=TEXT), model.Threshold(value=1e-9, color=colour)]
        panel.thresholds(dashboard.ThresholdsConfig().mode(model.ThresholdsMode.ABSOLUTE).steps(steps))
        panel.color_scheme(dashboard.FieldColor().mode(model.FieldColorModeId.THRESHOLDS))
    else:
        panel.color_scheme(dashboard.FieldColor().mode(model.FieldColorModeId.FIXED).fixed_color(colour))
    if decimals is not None:
        panel.decimals(decimals)
    return panel


def bars(
    text: Text,
    unit: str,
    *queries: Query,
    size: Size = HALF,
    colours: Mapping[str, str] | None = None,
    colour: str = SKY,
    high: float | None = None,
) -> bargauge.Panel:
    """A bar a series, of the values at the end of the range."""
    panel = dress(bargauge.Panel(), text, unit, queries, size)
    panel.reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]).values(False).fields(""))
    panel.orientation(shapes.VizOrientation.HORIZONTAL).display_mode(shapes.BarGaugeDisplayMode.BASIC)
    panel.value_mode(shapes.BarGaugeValueMode.TEXT).show_unfilled(False).min(0)
    panel.text(common.VizTextDisplayOptions().value_size(14))  # else a text instead of a value is made to fit a number
    panel.color_scheme(dashboard.FieldColor().mode(model.FieldColorModeId.FIXED).fixed_color(colour))
    if high is not None:
        panel.max(high)
    return _colours(panel, colours or {})


def density(text: Text, unit: str, bounds: str, query: Query, size: Size = HALF) -> heatmap.Panel:
    """A histogram's buckets over time. ``unit``: that of the counts; ``bounds``: that of the buckets' bounds."""
    panel = dress(heatmap.Panel(), text, unit, [query], size)
    panel.calculate(False).y_axis(heatmap.YAxisConfig().unit(bounds)).cell_gap(1)
    panel.color(heatmap.HeatmapColorOptions().mode(HeatmapColorMode.SCHEME).scheme("Cividis").steps(64).exponent(0.5))
    return panel
