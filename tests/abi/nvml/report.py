"""What the player counted, read from outside while another process runs the library (see report.c)."""

import struct
from dataclasses import dataclass
from pathlib import Path

_GAUGES = struct.Struct("6q16x")
_FUNCTION = struct.Struct("56sQ")


@dataclass(frozen=True)
class Report:
    open_samples: int
    open_mig_samples: int
    open_event_sets: int
    init_count: int
    hanging: int
    """Calls that hang right now."""
    total_calls: int
    calls: dict[str, int]

    def called(self, function: str) -> int:
        return self.calls.get(function, 0)


def read_report(path: Path) -> Report:
    """All zero before the library was loaded."""
    data = path.read_bytes() if path.exists() else b""
    if not data:
        return Report(0, 0, 0, 0, 0, 0, {})
    calls = {
        name.rstrip(b"\0").decode("ascii"): count
        for name, count in _FUNCTION.iter_unpack(data[_GAUGES.size :])
        if name.rstrip(b"\0")
    }
    samples, mig_samples, event_sets, init_count, hanging, total = _GAUGES.unpack_from(data)
    return Report(samples, mig_samples, event_sets, init_count, hanging, total, calls)
