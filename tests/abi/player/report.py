"""What a player counted, read from outside while other processes run the library (see report.c)."""

import struct
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

_GAUGES = struct.Struct("16q")
_FUNCTION = struct.Struct("56sQQ")
_FUNCTION_MAX = 256


@dataclass(frozen=True)
class Report:
    """Each player adds its own gauges, in the order of its enum gauge."""

    calls: dict[str, int]
    requests_by: dict[str, int]
    """By the function that made them."""
    hanging: int
    """Calls that hang right now."""
    total_calls: int
    requests: int
    """What libdcgm would have asked of the hostengine: one for each field of each entity in values since."""

    def called(self, function: str) -> int:
        return self.calls.get(function, 0)


_R = TypeVar("_R", bound=Report)


def read_report(path: Path, kind: type[_R]) -> _R:
    """All zero before the library was initialized."""
    data = path.read_bytes() if path.exists() else b""
    data = data or bytes(_GAUGES.size + _FUNCTION_MAX * _FUNCTION.size)
    table = data[_GAUGES.size : _GAUGES.size + _FUNCTION_MAX * _FUNCTION.size]
    rows = [(name.rstrip(b"\0").decode("ascii"), *counts) for name, *counts in _FUNCTION.iter_unpack(table)]
    calls = {name: calls for name, calls, _ in rows if name}
    requests_by = {name: requests for name, _, requests in rows if name}
    gauges: tuple[Any, ...] = _GAUGES.unpack_from(data)
    return kind(calls, requests_by, *gauges[: len(fields(kind)) - 2])
