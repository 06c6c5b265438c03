"""Other clients of the same hostengine, as far as it shows them: it samples at the shortest interval of all clients.

DCGM has no public call that lists who watches what. But its cache holds samples from before this client connected, and
samples that come closer together than it asked for are for another client.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass

from exporter.sources.dcgm.errors import CallFailed
from exporter.sources.dcgm.groups import EntityGroup, Groups
from exporter.sources.dcgm.rows import Rows
from exporter.sources.dcgm.values import IDS, FieldSample

log = logging.getLogger(__name__)
HISTORY = 600.0  # seconds of the cache that are read
LATE = 1.5  # intervals after which the next sample should have come: its client is gone
_ASKED = (IDS["busy"], IDS["sm"], IDS["power"])  # what hardly any client leaves out


@dataclass
class Neighbours:
    """Finds other clients. ``interval``: seconds between this client's samples. Kept as long as the connection."""

    interval: float
    slower: float | None = None
    """Seconds between the samples of others before this client connected, where that is longer."""
    faster: float | None = None
    """Seconds between samples, where another client wants them faster than this one."""
    _asked: bool = False

    def before(self, groups: Groups, group: EntityGroup, now: int) -> None:
        """Call once, before the first watch. ``now``: microseconds on the hostengine's clock.

        Raises CallFailed for a lost connection.
        """
        if self._asked:
            return
        self._asked = True
        try:
            self.slower = _longer(_sampled(groups, group, now), self.interval, now)
        except CallFailed as failure:
            if failure.connection_lost:
                raise
            return
        if self.slower is not None:
            log.warning("%s", self._about_slower(self.slower))

    def watch(self, closest: dict[str, float]) -> None:
        """Seconds between samples that came closer than asked for, by GPU; none: there are none."""
        faster = min(closest.values(), default=None)
        news, self.faster = faster is not None and self.faster is None, faster
        if news and faster is not None:
            log.info("%s: %s", ", ".join(sorted(closest)), self._about_faster(faster))

    def notes(self) -> list[str]:
        """One sentence about each kind of client that there is."""
        slower = [] if self.slower is None else [self._about_slower(self.slower)]
        return slower + ([] if self.faster is None else [self._about_faster(self.faster)])

    def _about_slower(self, seconds: float) -> str:
        return (
            f"another client of the hostengine had a sample taken every {seconds:.3g} s; now one is taken every "
            f"{self.interval:.3g} s, and the means that it reads cover no more than that "
            f"(--sampling.interval={seconds:.3g}s leaves it alone)"
        )

    def _about_faster(self, seconds: float) -> str:
        return (
            f"another client of the hostengine has a sample taken every {seconds:.3g} s, sooner than the "
            f"{self.interval:.3g} s asked for here; so that none is lost each field is read by itself, a request each"
        )


def _sampled(groups: Groups, group: EntityGroup, now: int) -> list[FieldSample]:
    rows = Rows(groups.session)
    fields = groups.hold_fields(_ASKED)
    try:
        since = now - round(HISTORY * 1e6)
        groups.session.call("dcgmGetValuesSince_v2", group.handle, fields, since, rows.callback, None)
    finally:
        groups.release_fields(_ASKED)
    return rows.take()


def _longer(rows: Iterable[FieldSample], interval: float, now: int) -> float | None:
    """The shortest distance, in seconds, of the last two samples of a field that is still sampled; None if it is not
    longer than ``interval``."""
    times: dict[tuple[int, int], list[int]] = {}
    for row in rows:
        if row.status == 0:
            times.setdefault((row.entity, row.field), []).append(row.time)
    found = []
    for each in times.values():
        distance = each[-1] - each[-2] if len(each) > 1 else 0
        if distance > 0 and now - each[-1] <= LATE * distance:
            found.append(distance * 1e-6)
    shortest = min(found, default=0.0)
    return shortest if shortest > LATE * interval else None
