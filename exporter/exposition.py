"""Samples as bytes: Prometheus text 0.0.4 and OpenMetrics 1.0, memoised per (snapshot, format, encoding).

Formats: prometheus.io/docs/instrumenting/exposition_formats, OpenMetrics specification 1.0.
"""

from __future__ import annotations

import gzip
import threading
from collections.abc import Callable, Iterable, Mapping

from exporter.core.snapshot import Snapshot
from exporter.metrics.family import Family, Sample, Type

GZIP_LEVEL = 1  # a sixth of the time of level 9 for 10 % more bytes


def text(families: Mapping[Family, Iterable[Sample]]) -> bytes:
    """Text format 0.0.4."""
    lines: list[str] = []
    for family, samples in families.items():
        name = family.series_name
        kind = Type.GAUGE if family.type is Type.INFO else family.type
        lines.append(f"# HELP {name} {_help(family)}\n# TYPE {name} {kind.value}\n")
        _write(lines, name, samples)
    return _encoded(lines)


def openmetrics(families: Mapping[Family, Iterable[Sample]]) -> bytes:
    """OpenMetrics 1.0."""
    lines: list[str] = []
    for family, samples in families.items():
        name = family.full_name
        lines.append(f"# TYPE {name} {family.type.value}\n")
        if family.unit:
            lines.append(f"# UNIT {name} {family.unit}\n")
        quoted = _help(family).replace('"', '\\"')
        lines.append(f"# HELP {name} {quoted}\n")
        _write(lines, family.series_name, samples)
    lines.append("# EOF\n")
    return _encoded(lines)


def _encoded(lines: Iterable[str]) -> bytes:
    """UTF-8. What has no UTF-8 (half of a surrogate pair, out of JSON or a file's name) becomes a question mark."""
    return "".join(lines).encode(errors="replace")


def _help(family: Family) -> str:
    return family.help.replace("\\", "\\\\").replace("\n", "\\n")


def _write(lines: list[str], name: str, samples: Iterable[Sample]) -> None:
    for _, labels, value, suffix in samples:
        braces = f"{{{labels}}}" if labels else ""
        lines.append(f"{name}{suffix}{braces} {float(value)!r}\n")


Representation = tuple[bool, bool]  # (OpenMetrics, gzipped)


class Rendered:
    """The bytes of one Snapshot, each rendered when first asked for and kept."""

    def __init__(self, snapshot: Snapshot, collect: Callable[[Snapshot], Mapping[Family, list[Sample]]]) -> None:
        self.snapshot = snapshot
        self._collect = collect
        self._families: Mapping[Family, list[Sample]] | None = None
        self._bytes: dict[Representation, bytes] = {}
        self._lock = threading.Lock()

    def get(self, form: Representation) -> bytes:
        """The exposition; the same object each time it is asked for."""
        with self._lock:
            if form not in self._bytes:
                self._bytes[form] = self._render(*form)
            return self._bytes[form]

    def _render(self, open_metrics: bool, gzipped: bool) -> bytes:
        if gzipped:
            plain = self._bytes.get((open_metrics, False)) or self._render(open_metrics, False)
            self._bytes[(open_metrics, False)] = plain
            return gzip.compress(plain, compresslevel=GZIP_LEVEL, mtime=0)
        if self._families is None:
            self._families = self._collect(self.snapshot)
        return openmetrics(self._families) if open_metrics else text(self._families)
