"""The last ten minutes of every entity, from memory: what the page draws. Bounded, and lost with the process."""

from __future__ import annotations

import threading
import time
from array import array
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isnan, nan
from typing import NamedTuple

from exporter.background.freshness import lifetime
from exporter.core.ledger import EntityTotals
from exporter.core.snapshot import EntityView, Snapshot
from exporter.model import Entity

KEPT_SECONDS = 600.0
SPACING = 1.0  # seconds: at most one point in this time, however fast is sampled
_TOLERANCE = 0.05  # seconds by which the sampler's windows jitter
PARTS = ("working", "stalled", "hollow", "unexplained", "idle")
# seconds: of observed time, of the column that has most; the others are means, each over its own observed time
COLUMNS = ("seconds", "claimed", "sm", *PARTS)
QUIET_SECONDS = 5.0  # without a Snapshot, at the least, before the numbers are called stale


class Freshness(NamedTuple):
    """How old the last Snapshot is, on the machine's own clock."""

    age: float  # seconds since it was published
    stale: bool  # longer than the pace of publishing explains


@dataclass(frozen=True)
class Points:
    """Means of all entities over the time since the point before; None where there is no value."""

    timestamps: list[float]  # Unix seconds, ends of the intervals, ascending
    columns: Mapping[Entity, Mapping[str, list[float | None]]]  # entity -> column -> as long as ``timestamps``


class _Moment(NamedTuple):
    time: float
    timestamp: float
    entities: tuple[Entity, ...]  # the same object as long as nothing appears or goes
    values: array[float]  # len(entities) x COLUMNS; NaN: absent


class History:
    """Fed with every Snapshot by the sampler's thread, read by those of the web server.

    Points are differences of the ledger's totals, not samples of the gauges: with ten windows a second, each point is
    still the mean over its whole second. A column that no part of an entity fills costs 4 bytes a point.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        """``now``: real time, for the age alone; points lie on the Snapshots' own time."""
        self._now = now
        self._moments: deque[_Moment] = deque(maxlen=round(KEPT_SECONDS / SPACING))
        self._before: dict[Entity, EntityTotals] = {}
        self._arrived: float | None = None
        self._pace = 0.0
        self._lock = threading.Lock()

    def add(self, snapshot: Snapshot) -> None:
        """Take a point, unless the last one is too near."""
        with self._lock:
            now = self._now()
            self._pace = 0.0 if self._arrived is None else now - self._arrived
            self._arrived = now
            last = self._moments[-1] if self._moments else None
            if last is not None and snapshot.time - last.time < SPACING - _TOLERANCE:
                return
            entities = tuple(view.device.entity for view in snapshot.entities)
            if last is not None and last.entities == entities:
                entities = last.entities
            values = array("f")
            for view in snapshot.entities:
                values.extend(_point(view, self._before.get(view.device.entity) or EntityTotals()))
            self._before = {view.device.entity: view.totals for view in snapshot.entities}
            self._moments.append(_Moment(snapshot.time, snapshot.timestamp, entities, values))

    def since(self, timestamp: float) -> Points:
        """The points later than ``timestamp`` (Unix seconds) that are not older than ten minutes."""
        with self._lock:
            newest = self._moments[-1].time if self._moments else 0.0
            moments = [m for m in self._moments if newest - m.time < KEPT_SECONDS and m.timestamp > timestamp]
        columns: dict[Entity, dict[str, list[float | None]]] = {}
        for number, moment in enumerate(moments):
            for place, entity in enumerate(moment.entities):
                lists = columns.get(entity)
                if lists is None:
                    lists = columns[entity] = {name: [None] * len(moments) for name in COLUMNS}
                start = place * len(COLUMNS)
                for name, value in zip(COLUMNS, moment.values[start : start + len(COLUMNS)], strict=True):
                    lists[name][number] = None if isnan(value) else round(value, 4)
        return Points([moment.timestamp for moment in moments], columns)

    def freshness(self) -> Freshness | None:
        """None before the first Snapshot."""
        with self._lock:
            if self._arrived is None:
                return None
            age = self._now() - self._arrived
            return Freshness(age, age > lifetime(self._pace, QUIET_SECONDS))


def _point(view: EntityView, before: EntityTotals) -> list[float]:
    totals = view.totals
    if any(totals.observed.get(of, 0.0) < seconds for of, seconds in before.observed.items()):
        before = EntityTotals()  # the totals began again: the entity was forgotten and came back
    claim = view.claim or ""
    observed = {of: totals.observed.get(of, 0.0) - before.observed.get(of, 0.0) for of in (claim, "sm", "parts")}
    values = [
        _mean(totals.seconds, before.seconds, claim, observed[claim]),
        _mean(totals.seconds, before.seconds, "sm", observed["sm"]),
        *(_mean(totals.parts, before.parts, p, observed["parts"]) if p in view.parts else nan for p in PARTS),
    ]
    return [max(observed.values()) or nan, *values]


def _mean(now: Mapping[str, float], before: Mapping[str, float], key: str, seconds: float) -> float:
    return (now.get(key, 0.0) - before.get(key, 0.0)) / seconds if seconds > 0 else nan
