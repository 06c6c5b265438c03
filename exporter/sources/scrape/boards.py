"""What belongs to a board and what to a GPU instance of it; and one value for each field of each.

On a board cut into instances (MIG), dcgm-exporter prints the board's power, energy, clocks, temperatures on the row of
every instance (field case 42), read at slightly different moments. They count once, on the board. Only profiling ratios
and memory are an instance's own. The claim (GPU_UTIL, MEM_COPY_UTIL) does not exist there, even where a 0 is printed
(field cases 2, 35).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from exporter.fields import CLAIM, FIELDS, PROFILING, TENSOR_PIPES, Kind
from exporter.model import Absence, Entity

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
    """Each value where it belongs."""
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
