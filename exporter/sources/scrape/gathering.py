"""From the samples of a page to one value for each field of each GPU and GPU instance, in base units."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from exporter.model import Absence, Entity, Problem
from exporter.sources.scrape.boards import Key, Value, assigned, once
from exporter.sources.scrape.dialect import Meaning, UnknownUnitError, meaning
from exporter.sources.scrape.identity import GpuLabels, is_elsewhere, is_gpu_family, row
from exporter.sources.scrape.text import Exposition
from exporter.sources.scrape.values import number
from exporter.trust import zero_without_sensor

_Family = Sequence[tuple[Entity, str]]  # entity and printed value of each row


@dataclass(frozen=True, slots=True)
class Gathered:
    """What a page says about GPUs."""

    rows: Mapping[Entity, GpuLabels]  # every board and instance, with what the labels tell
    values: Mapping[Key, Value]
    problems: Sequence[Problem]
    rejected: Mapping[tuple[str, str], int]


def gather(exposition: Exposition) -> Gathered:
    """Read the whole page. Without any GPU on it, ``rows`` is empty."""
    rejected: Counter[tuple[str, str]] = Counter()
    rejected[("line", "unparseable")] += exposition.unparseable
    rows, families, unidentified = _sorted_out(exposition)
    rejected[("line", "unidentified")] += unidentified
    chosen, problems = _chosen(families, exposition.helps)
    rejected[("family", "unknown_unit")] += len(problems)
    values: dict[Key, Value] = {}
    for name, means in chosen.items():
        for entity, printed in _by_entity(families[name]).items():
            value = once(number(text) for text in printed)
            rejected[("field", "duplicate")] += value is Absence.OVERLAP
            values[(entity, means.field)] = _converted(means, value)
    return Gathered(rows, assigned(values), problems, {key: count for key, count in rejected.items() if count})


def _sorted_out(exposition: Exposition) -> tuple[dict[Entity, GpuLabels], dict[str, list[tuple[Entity, str]]], int]:
    """The rows that name a GPU: facts by entity, values by family; and how many should name one and do not.

    A board is listed even if only its instances have rows.
    """
    rows: dict[Entity, GpuLabels] = {}
    families: dict[str, list[tuple[Entity, str]]] = {}
    unidentified = 0
    seen: dict[int, GpuLabels | None] = {}  # by identity of the labels, which the samples share
    for sample in exposition.samples:
        if not is_gpu_family(sample.name) or is_elsewhere(sample.labels):
            continue
        key = id(sample.labels)
        if key not in seen:
            seen[key] = found = row(sample.labels)
            if found is not None:
                board = found._replace(entity=Entity(found.entity.uuid), mig_profile="")
                for each in (board, found):
                    rows[each.entity] = rows[each.entity].merged(each) if each.entity in rows else each
        whose = seen[key]
        if whose is None:
            unidentified += 1
        else:
            families.setdefault(sample.name, []).append((whose.entity, sample.value))
    return rows, families, unidentified


def _chosen(families: Mapping[str, _Family], helps: Mapping[str, str]) -> tuple[dict[str, Meaning], list[Problem]]:
    """The families to read, one a field: where a page has a field under two names, the later and more exact one."""
    best: dict[str, tuple[str, Meaning]] = {}
    problems: list[Problem] = []
    for name, family in families.items():
        try:
            found = meaning(name, helps.get(name, ""), (printed for _, printed in family))
        except UnknownUnitError as error:
            remedy = "correct its HELP text in that exporter's file of counters, (in MHz) for instance"
            problems.append(Problem(f"{name} is not read", f"its unit is not known: {error}", remedy))
            continue
        if found and (found.field not in best or best[found.field][1].rank < found.rank):
            best[found.field] = (name, found)
    return dict(best.values()), problems


def _by_entity(family: Iterable[tuple[Entity, str]]) -> dict[Entity, list[str]]:
    printed: dict[Entity, list[str]] = {}
    for entity, text in family:
        printed.setdefault(entity, []).append(text)
    return printed


def _converted(means: Meaning, value: Value) -> Value:
    if isinstance(value, Absence):
        return value
    if zero_without_sensor(means.field, value):
        return Absence.NOT_SUPPORTED
    return means.scale(value)
