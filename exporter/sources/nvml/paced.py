"""Values of one board that are asked for at one pace: a single request for all that have field ids."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from exporter.model import Absence, Entity, Reading
from exporter.sources.nvml.library import FUNCTION_NOT_FOUND, INVALID_ARGUMENT, LOST, NOT_SUPPORTED, absence, number
from exporter.trust import zero_without_sensor

Ask = Callable[[Any, Any], float]
NO_SUCH_FIELD = frozenset({NOT_SUPPORTED, INVALID_ARGUMENT, FUNCTION_NOT_FOUND})


@dataclass(frozen=True, slots=True)
class Value:
    """Where one field comes from, in its base unit.

    ``ids``: of nvmlDeviceGetFieldValues, added up, over ``divisor``. ``ask``: the function with the same value, for
    boards and drivers that do not have the ids.
    """

    ids: tuple[int, ...] = ()
    divisor: float = 1.0
    ask: Ask | None = None


class Paced:
    """Asks at most every ``seconds``; in between it returns the last answers. What the board does not support
    is not asked for again."""

    def __init__(self, nvml: Any, entity: Entity, values: Mapping[str, Value], seconds: float) -> None:
        """``seconds``: the least between two requests."""
        self._nvml, self._entity, self._values, self._seconds = nvml, entity, values, seconds
        self._together = [field for field, value in values.items() if value.ids]
        self._alone = [field for field, value in values.items() if not value.ids]
        self._unsupported: list[str] = []
        self._at = float("-inf")
        self._last: list[Reading] = []

    def read(self, handle: Any, now: float) -> list[Reading]:
        """One of each field, with the moment it was read at. NVMLError when the GPU is lost."""
        if now - self._at >= self._seconds:
            self._last = list(self._ask(handle, now))
            self._at = now
        return self._last

    def _ask(self, handle: Any, now: float) -> Iterator[Reading]:
        yield from self._batch(handle, now)
        for field in tuple(self._alone):
            yield self._one(handle, field, now)
        for field in self._unsupported:
            yield self._absent(field, now, NOT_SUPPORTED)

    def _batch(self, handle: Any, now: float) -> Iterator[Reading]:
        """What has no such field goes over to the functions, which are asked next."""
        if not self._together:
            return
        for field, found in self._request(handle).items():
            value = self._values[field]
            code = next((code for code, _ in found if code != 0), 0)
            total = sum(each for _, each in found) / value.divisor
            if code == 0 and not zero_without_sensor(field, total):
                yield Reading(self._entity, field, now, total)
            elif code == 0 or code in NO_SUCH_FIELD:
                self._together.remove(field)
                (self._unsupported if value.ask is None else self._alone).append(field)
            else:
                yield self._absent(field, now, code)

    def _request(self, handle: Any) -> dict[str, list[tuple[int, float]]]:
        """Of each field, (return code, number) of each of its ids."""
        nvml, wanted = self._nvml, [(field, id_) for field in self._together for id_ in self._values[field].ids]
        found: dict[str, list[tuple[int, float]]] = {field: [] for field in self._together}
        try:
            values = nvml.nvmlDeviceGetFieldValues(handle, [id_ for _, id_ in wanted])
        except nvml.NVMLError as error:
            if error.value in LOST:
                raise
            return {field: [(error.value, 0.0)] for field in found}
        for (field, _), value in zip(wanted, values, strict=True):
            code = int(value.nvmlReturn)
            if code in LOST:
                raise nvml.NVMLError(code)
            found[field].append((code, number(value.value, value.valueType) if code == 0 else 0.0))
        return found

    def _one(self, handle: Any, field: str, now: float) -> Reading:
        ask = self._values[field].ask
        assert ask is not None
        try:
            return Reading(self._entity, field, now, ask(self._nvml, handle))
        except self._nvml.NVMLError as error:
            if error.value in LOST:
                raise
            made = self._absent(field, now, error.value)
            if made.absence is Absence.NOT_SUPPORTED:
                self._alone.remove(field)
                self._unsupported.append(field)
            return made

    def _absent(self, field: str, now: float, code: int) -> Reading:
        return Reading(self._entity, field, now, None, None, absence(self._nvml.NVMLError(code)))
