"""The interval that a mean covers, which the page of the other exporter does not state."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from statistics import median_low

from exporter.background.freshness import lifetime
from exporter.model import Entity

_REMEMBERED = 8  # gaps


class ReadPace:
    """Remembers when reads were attempted, and when each entity was last read.

    The usual pace is the median of the recent gaps between tries, failed ones among them: neither an outage nor one
    late read moves it.
    """

    def __init__(self) -> None:
        self._tried: float | None = None
        self._gaps: deque[float] = deque(maxlen=_REMEMBERED)
        self._usual: float | None = None
        self._ends: dict[Entity, float] = {}

    def tried(self, now: float) -> None:
        """Call at the start of a read."""
        gap = 0.0 if self._tried is None else now - self._tried
        self._usual = median_low(self._gaps) if self._gaps else gap
        self._tried = now
        if gap > 0:
            self._gaps.append(gap)

    def start(self, entity: Entity, now: float) -> float | None:
        """The start of the interval of ``entity`` that ends now, in seconds; None at its first read."""
        before = self._ends.get(entity)
        if before is None or before >= now or not self._usual:
            return None
        outage = now - before > lifetime(self._usual)  # its time is not known
        return now - self._usual if outage else before

    def known(self, entity: Entity) -> bool:
        """True when the entity was there in an earlier read."""
        return entity in self._ends

    def ended(self, entities: Iterable[Entity], now: float) -> None:
        """Call at the end of a read, with the entities on the page."""
        self._ends.update(dict.fromkeys(entities, now))
