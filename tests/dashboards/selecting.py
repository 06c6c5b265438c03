"""Which series a query selects, and in what."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta

import promql_parser as promql


@dataclass(frozen=True)
class Selected:
    """A series in a query: within which functions, over what window (None: now), in a subquery of which step."""

    series: str
    within: tuple[str, ...] = ()
    window: timedelta | None = None
    step: timedelta | None = None


def selected(expression: promql.Expr, at: Selected) -> Iterator[Selected]:
    """All series of a query."""
    if isinstance(expression, promql.VectorSelector):
        yield replace(at, series=expression.name or "without a name")
    elif isinstance(expression, promql.MatrixSelector):
        yield from selected(expression.vector_selector, replace(at, window=expression.range))
    elif isinstance(expression, promql.SubqueryExpr):
        yield from selected(expression.expr, replace(at, step=expression.step))
    elif isinstance(expression, promql.Call):
        for argument in expression.args:
            yield from selected(argument, replace(at, within=(*at.within, expression.func.name)))
    elif isinstance(expression, promql.BinaryExpr):
        yield from selected(expression.lhs, at)
        yield from selected(expression.rhs, at)
    elif isinstance(expression, (promql.ParenExpr, promql.UnaryExpr, promql.AggregateExpr)):
        yield from selected(expression.expr, at)
