"""Tables: rows of labels and values, and a heat map of things."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

from grafana_foundation_sdk.builders import common, dashboard, table
from grafana_foundation_sdk.models import common as shapes
from grafana_foundation_sdk.models import dashboard as model

from dashboards.build.panels import HALF, Query, Size, Text, dress
from dashboards.build.variables import Link

NOT_KNOWN = "\N{EN DASH}"
"""In a cell: else Grafana puts the panel's whole text for *nothing to show* there."""


def _step(kind: str, options: Mapping[str, object]) -> model.DataTransformerConfig:
    return model.DataTransformerConfig(id_val=kind, options=options)


def _is(name: str, value: object) -> model.DynamicConfigValue:
    return model.DynamicConfigValue(name, value)


def _links(link: Link) -> model.DynamicConfigValue:
    return _is("links", [asdict(link)])


def rows(
    text: Text,
    unit: str,
    *queries: Query,
    columns: Mapping[str, str],
    size: Size = HALF,
    sort: str = "",
    first: str = "",
    units: Mapping[str, str] | None = None,
    links: Mapping[str, Link] | None = None,
) -> table.Panel:
    """A table of instant queries, joined on the labels that they share.

    ``columns``: label, or ``Value #A`` for the first query's value -> heading, in this order; all others are hidden.
    ``sort``: the heading to sort by, largest first; ``first``: one to sort by before, smallest first. ``units``: of
    values, by heading, where they differ from ``unit``. ``links``: by the heading in whose cells they are: a column
    whose label no series has is not there, nor is its link.
    """
    panel = dress(table.Panel(), text, unit, queries, size)
    # one query alone has its value in "Value", several in "Value #A", "Value #B", ...
    names = {"Value" if len(queries) == 1 and name == "Value #A" else name: head for name, head in columns.items()}
    panel.with_transformation(_step("merge", {}))
    panel.with_transformation(_step("filterFieldsByName", {"include": {"names": list(names), "variable": ""}}))
    places = {name: at for at, name in enumerate(names)}
    panel.with_transformation(_step("organize", {"indexByName": places, "renameByName": dict(names)}))
    order = [(first, False), (sort, True)]
    panel.sort_by([common.TableSortByFieldState().display_name(head).desc(down) for head, down in order if head])
    for name, heading in names.items():
        if name.startswith("Value"):
            own = (units or {}).get(heading, unit)
            panel.override_by_name(heading, [_is("unit", own), _is("noValue", NOT_KNOWN)])
        else:  # a job's number is no amount; an empty cell must stay empty, for links carry what it shows
            panel.override_by_name(heading, [_is("unit", "string"), _is("noValue", "")])
    for heading, link in (links or {}).items():
        panel.override_by_name(heading, [_links(link)])
    return panel


def grid(
    text: Text,
    unit: str,
    query: Query,
    *,
    row: str,
    heading: str,
    column: str,
    size: Size,
    link: Link,
) -> table.Panel:
    """One coloured cell a pair of labels: a heat map of things, from 0 to 1.

    ``heading``: what the labels ``row`` are called; ``link`` knows them by it. ``column``: a label that is a number.
    """
    panel = dress(table.Panel(), text, unit, [query], size)
    as_number = {"conversions": [{"targetField": column, "destinationType": "number"}], "fields": {}}
    panel.with_transformation(_step("convertFieldType", as_number))  # so that 10 comes after 9
    panel.with_transformation(_step("sortBy", {"fields": {}, "sort": [{"field": column}]}))
    matrix = {"rowField": row, "columnField": column, "valueField": "Value", "emptyValue": "null"}
    panel.with_transformation(_step("groupingToMatrix", matrix))
    panel.with_transformation(_step("organize", {"renameByName": {f"{row}\\{column}": heading}}))
    panel.sort_by([common.TableSortByFieldState().display_name(heading).desc(False)])
    panel.min(0).max(1).decimals(0)
    panel.color_scheme(dashboard.FieldColor().mode(model.FieldColorModeId.CONTINUOUS_BLUES))
    panel.cell_options(shapes.TableColoredBackgroundCellOptions(mode=shapes.TableCellBackgroundDisplayMode.BASIC))
    panel.override_by_regexp("/.*/", [_is("noValue", NOT_KNOWN), _links(link)])
    panel.override_by_name(heading, [_is("custom.cellOptions", {"type": "auto"}), _is("unit", "string")])
    return panel
