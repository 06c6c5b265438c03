"""From the samples of a page to one value for each field of each GPU and GPU instance, in base units.

On a board with MIG instances, dcgm-exporter prints the board's power, energy, clocks and temperatures on the row of
every instance (field case 42), read at slightly different moments. They count once, on the board. Only profiling ratios
and memory belong to an instance. The claim (GPU_UTIL, MEM_COPY_UTIL) does not exist there, even where a 0 is printed
(field cases 2, 35).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from exporter.fields import CLAIM, FIELDS, PROFILING, TENSOR_PIPES, Kind
from exporter.model import Absence, Entity, Problem
from exporter.sources.scrape.dialect import Meaning, UnknownUnitError, meaning, number
from exporter.sources.scrape.identity import GpuLabels, is_elsewhere, is_gpu_family, row
from exporter.sources.scrape.text import Exposition
from exporter.trust import zero_without_sensor

Value = float | Absence
Key = tuple[Entity, str]  # entity, field

OF_INSTANCES = frozenset(
    {*PROFILING, *TENSOR_PIPES, "memory_total", "memory_free", "memory_used", "memory_reserved", "xid"}
)


def once(values: Iterable[Value]) -> Value:
    """The one value of several rows: pods that share a GPU repeat it. Values that differ are Absence.OVERLAP."""
    rows = list(values)
    numbers = {value for value in rows if not isinstance(value, Absence)}
    if len(numbers) > 1:
        return Absence.OVERLAP
    return numbers.pop() if numbers else rows[0]


def assigned(values: Mapping[Key, Value]) -> dict[Key, Value]:
    """Assign each value to the board or the instance that it belongs to."""
    cut = {entity.uuid for entity, _ in values if entity.gpu_instance is not None}
    found: dict[Key, Value] = {}
    repeated: dict[Key, list[Value]] = {}
    for (entity, field), value in values.items():
        if entity.uuid in cut and field in CLAIM:
            found[(entity, field)] = Absence.NOT_SUPPORTED
        elif entity.gpu_instance is None or field in OF_INSTANCES:
            found[(entity, field)] = value
        else:
            repeated.setdefault((Entity(entity.uuid), field), []).append(value)
    for key, rows in repeated.items():
        found.setdefault(key, _of_board(key[1], rows))  # where the board has a row of its own, that one counts
    return found


def _of_board(field: str, rows: Sequence[Value]) -> Value:
    """Of several reads of one quantity: the latest of a counter, else the first that is a number."""
    numbers = [value for value in rows if not isinstance(value, Absence)]
    if not numbers:
        return rows[0]
    return max(numbers) if FIELDS[field].kind is Kind.COUNTER else numbers[0]


_Family = Sequence[tuple[Entity, str]]  # entity and printed value of each row


@dataclass(frozen=True, slots=True)
class Gathered:
    """The GPUs of a page and their values."""

    rows: Mapping[Entity, GpuLabels]  # every board and instance, with the facts in its labels
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
            remedy = "correct its HELP text in that exporter's counters file, for example (in MHz)"
            problems.append(Problem(f"{name} is not read", f"its unit is unknown: {error}", remedy))
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
