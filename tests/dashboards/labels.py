"""Which labels the result of a PromQL expression can have, and what is wrong with the names in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import promql_parser as promql

Labels = Mapping[str, frozenset[str]]


class Unknown(Exception):
    """A series or a label that does not exist."""


def of(expression: promql.Expr, known: Labels) -> frozenset[str]:
    """The labels of its result. Raises Unknown where it names something that does not exist."""
    if isinstance(expression, promql.VectorSelector):
        return _selected(expression, known)
    if isinstance(expression, promql.MatrixSelector):
        return _selected(expression.vector_selector, known)
    if isinstance(expression, promql.AggregateExpr):
        return _aggregated(expression, known)
    if isinstance(expression, promql.BinaryExpr):
        return _joined(expression, known)
    if isinstance(expression, promql.Call):
        found = [of(argument, known) for argument in expression.args]
        if expression.func.name in ("label_replace", "label_join"):
            return found[0] | {expression.args[1].val}
        return frozenset() if expression.func.name in ("scalar", "vector", "time") else frozenset().union(*found)
    if isinstance(expression, (promql.ParenExpr, promql.UnaryExpr, promql.SubqueryExpr)):
        return of(expression.expr, known)
    assert isinstance(expression, (promql.NumberLiteral, promql.StringLiteral)), f"not handled: {type(expression)}"
    return frozenset()


def _demand(labels: Iterator[str] | list[str], there: frozenset[str], where: str) -> None:
    missing = sorted(set(labels) - there)
    if missing:
        raise Unknown(f"{where}: no label {', '.join(missing)}; there is {', '.join(sorted(there))}")


def _selected(selector: promql.VectorSelector, known: Labels) -> frozenset[str]:
    name = selector.name or "without a name"
    if name not in known:
        raise Unknown(f"no series {name}")
    labels = known[name]
    _demand([matcher.name for matcher in selector.matchers.matchers], labels, name)
    return labels


def _aggregated(expression: promql.AggregateExpr, known: Labels) -> frozenset[str]:
    inner = of(expression.expr, known)
    op = str(expression.op)
    if expression.modifier is None:
        return inner if op in ("topk", "bottomk") else frozenset()
    named = frozenset(expression.modifier.labels)
    _demand(list(named), inner, f"{op} {expression.modifier}")
    return named if expression.modifier.type == promql.AggModifierType.By else inner - named


def _joined(expression: promql.BinaryExpr, known: Labels) -> frozenset[str]:
    left, right = of(expression.lhs, known), of(expression.rhs, known)
    op, modifier = str(expression.op), expression.modifier
    if op in ("and", "unless"):
        result = left
    elif op == "or":
        result = left | right
    else:
        result = left or right
    if modifier is None or modifier.matching is None:
        return result
    on = modifier.matching.type == promql.LabelModifierType.Include
    if on:
        _demand(modifier.matching.labels, left & right, f"{op} on")
    brought = frozenset(modifier.group_labels or ())
    if modifier.card == promql.VectorMatchCardinality.ManyToOne:
        _demand(list(brought), right, f"{op} group_left")
        return left | brought
    if modifier.card == promql.VectorMatchCardinality.OneToMany:
        _demand(list(brought), left, f"{op} group_right")
        return right | brought
    if op in ("and", "or", "unless"):
        return result
    return frozenset(modifier.matching.labels) if on else left - frozenset(modifier.matching.labels)
