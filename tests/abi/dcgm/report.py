"""What the player counted, read from outside while other processes run the library (see report.c)."""

import struct
from dataclasses import dataclass
from pathlib import Path

_GAUGES = struct.Struct("8q")
_FUNCTION = struct.Struct("56sQQ")
_FUNCTION_MAX = 96


@dataclass(frozen=True)
class Report:
    open_handles: int
    open_groups: int
    open_field_groups: int
    open_watches: int
    """Fields of entities, times their watchers."""
    kept_samples: int
    hanging: int
    """Calls that hang right now."""
    total_calls: int
    requests: int
    """What libdcgm would have asked of the hostengine: one for each field of each entity in values since."""
    calls: dict[str, int]
    requests_by: dict[str, int]
    """By the function that made them."""

    def called(self, function: str) -> int:
        return self.calls.get(function, 0)


def read_report(path: Path) -> Report:
    """All zero before the library was initialized."""
    data = path.read_bytes() if path.exists() else b""
    if not data:
        return Report(0, 0, 0, 0, 0, 0, 0, 0, {}, {})
    functions = data[_GAUGES.size : _GAUGES.size + _FUNCTION_MAX * _FUNCTION.size]
    rows = [
        (name.rstrip(b"\0").decode("ascii"), calls, requests)
        for name, calls, requests in _FUNCTION.iter_unpack(functions)
        if name.rstrip(b"\0")
    ]
    calls_of = {name: calls for name, calls, _ in rows}
    requests_of = {name: requests for name, _, requests in rows}
    handles, groups, field_groups, watches, samples, hanging, total, asked = _GAUGES.unpack_from(data)
    return Report(handles, groups, field_groups, watches, samples, hanging, total, asked, calls_of, requests_of)
