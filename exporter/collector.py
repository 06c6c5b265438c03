"""The numbers for prometheus_client: to embed them in a process of your own, or to write them to a textfile.

The daemon renders its exposition itself (exporter.exposition); a test holds that both give the same samples.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from prometheus_client import Metric
from prometheus_client.registry import Collector

from exporter.core.snapshot import Snapshot
from exporter.metrics.catalogue import GROUPS, Selection, samples
from exporter.metrics.family import Family, Group

_LABEL = re.compile(r'([a-z_][a-z0-9_]*)="((?:[^"\\]|\\.)*)"', re.DOTALL | re.IGNORECASE)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


class SnapshotCollector(Collector):
    """Shows the Snapshot that ``current`` returns; nothing while that is None, before the first window.

    ``groups`` and ``selection``: which families. The process' own families are not among the usual groups:
    prometheus_client's default registry has them.
    """

    def __init__(
        self,
        current: Callable[[], Snapshot | None],
        groups: Sequence[Group] = GROUPS,
        selection: Selection | None = None,
    ) -> None:
        self._current = current
        self._groups = groups
        self._selection = selection or Selection()

    def describe(self) -> Iterator[Metric]:
        """All families that may be collected, without samples: a registry refuses another one of the same name."""
        for group in self._groups:
            yield from (_metric(family) for family in group.families if family in self._selection)

    def collect(self) -> Iterator[Metric]:
        """One Metric a family, with type, help and unit; families without samples are left out."""
        snapshot = self._current()
        if snapshot is None:
            return
        for family, listed in samples(snapshot, self._groups, self._selection).items():
            metric = _metric(family)
            for sample in listed:
                metric.add_sample(family.series_name + sample.suffix, dict(_labels(sample.labels)), sample.value)
            yield metric


def _metric(family: Family) -> Metric:
    # not the MetricFamily of its type: those want every label in every sample, and here an empty one is left out
    return Metric(family.full_name, family.help, family.type.value, family.unit)


def _labels(text: str) -> Iterable[tuple[str, str]]:
    """Names and values of a Sample's label text."""
    for match in _LABEL.finditer(text):
        plain = _ESCAPED.sub(lambda escaped: "\n" if escaped[1] == "n" else escaped[1], match[2])
        yield match[1], plain.encode(errors="replace").decode()  # as the daemon: what has no UTF-8 becomes "?"
