"""The profiling fields of one GPU: watched as far as the GPU allows, and watched again when they go dead.

What goes wrong in the field: refused whole because of one field; refused because another client holds the hardware;
stuck at zero or blank for ever after an Xid, until they are watched again (field cases 18 to 21).

Which fields a GPU offers: dcgmProfGetSupportedMetricGroups. Groups of different major ids run together; those of one
major id share hardware. Hopper and newer list everything, whether the GPU has it or not: a list of capabilities, not a
promise of data.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from exporter.background.backoff import Backoff
from exporter.model import Absence, Problem
from exporter.sources.dcgm.entities import GpuEntity
from exporter.sources.dcgm.errors import COMBINATION_REFUSED, CallFailed, Code
from exporter.sources.dcgm.groups import EntityGroup, Groups
from exporter.sources.dcgm.latest import Latest
from exporter.sources.dcgm.session import Session
from exporter.sources.dcgm.values import IDS, NATIVE_BYTES, SPECS, FieldSample, blank_of
from exporter.sources.dcgm.watches import Terms, Watch, watch_most
from exporter.trust import Dead

log = logging.getLogger(__name__)
ENGINES = ("sm", "sm_occupancy", "graphics_engine", "tensor", "dram", "fp32", "fp16", "fp64", "integer")
"""fields.PROFILING, most wanted first."""
_ENGINES = frozenset(IDS[name] for name in ENGINES)


class _Pulse(NamedTuple):
    """The engine fields in one read."""

    values: list[tuple[str, float]]
    """Field and value."""
    sampled: bool
    """There is a sample."""
    blank: bool
    """Each field that has samples has none at the end."""


class Measurement:
    """The watch of ``wanted`` (most wanted first) on one group of entities of one GPU."""

    def __init__(
        self, board: GpuEntity, what: str, groups: Groups, group: EntityGroup, wanted: Sequence[int], latest: Latest
    ) -> None:
        self.wanted = tuple(wanted)
        self.watch: Watch | None = None
        self.absences: dict[int, Absence] = {}
        """Why fields are not watched."""
        self.problems: tuple[Problem, ...] = ()
        self.blank = False
        """At the end of the last read every engine field was blank: the hostengine may have the reason."""
        self._board, self._what = board, what
        self._groups, self._group, self._latest = groups, group, latest
        self._known: tuple[int, ...] = ()
        self._retry = Backoff(10.0, 120.0)
        self._rearm = Backoff(30.0, 600.0)
        self._dead = Dead()

    @property
    def expected(self) -> tuple[int, ...]:
        """Fields that this GPU should deliver: the watched ones; those of the last watch, or all, while locked out."""
        if self.watch is not None:
            return self.watch.ids
        waiting = [id_ for id_ in self._known or self.wanted if not self.absences.get(id_, Absence.ERROR).definitive]
        return tuple(id_ for id_ in waiting if id_ not in NATIVE_BYTES)

    def due(self, now: float) -> bool:
        """Whether ``ensure`` has something to do: there is no watch, or one that has been dead for long."""
        if self.watch is None:
            return self._retry.due(now)
        return self._dead.holds(now) and self._rearm.due(now)

    def ensure(self, terms: Terms, since: int, now: float) -> None:
        """Make the watch, or make it again. A refusal is remembered, and tried again later.

        ``since``: the time at the hostengine. Raises CallFailed for a lost connection.
        """
        if self.watch is not None:
            log.warning("%s of %s: nothing but blanks or zeros; the watch is made again", self._what, self._board)
            self._rearm.failed(now)
            self.drop()
        try:
            self._arm(offers_of(self._groups.session, self._board.number), terms, since)
            self._retry.worked()
        except CallFailed as failure:
            if failure.connection_lost:
                raise
            self._retry.failed(now)
            self.absences = dict.fromkeys(self.wanted, failure.absence)
            what = f"{self._what} of {self._board} cannot be measured"
            self.problems = (Problem(what, failure.reason, failure.remedy, self._board.entity),)
        self._dead.revived(now)

    def observe(self, rows: Iterable[FieldSample], busy: float | None, now: float, *, silent: bool) -> None:
        """Feed one read to the rule for dead watches. ``busy``: the claim over the same time, if there is one;
        ``silent``: no sample came for longer than it should take."""
        pulse = _pulse(rows)
        if not pulse.sampled and not silent:
            return  # no new sample
        self.blank = pulse.blank
        self._dead.feed(pulse.values, busy, now, silent=pulse.blank or silent)
        if any(value for _, value in pulse.values):
            self._rearm.worked()

    def excuse(self, now: float) -> None:
        """Profiling is paused, not dead: the watch need not be made again."""
        self._dead.revived(now)

    def drop(self) -> None:
        """Ends the watch, if there is one. Raises CallFailed for a lost connection."""
        if self.watch is not None:
            self.watch.stop()
        self.watch = None

    def _arm(self, offers: Sequence[Offer], terms: Terms, since: int) -> None:
        self._known = offered(offers, self.wanted)
        if not self._known:
            raise CallFailed("dcgmProfGetSupportedMetricGroups", Code.PROFILING_NOT_SUPPORTED, "")
        together = self._known
        try:
            watch, refused = watch_most(self._groups, self._group, together, terms, since, self._latest)
        except CallFailed as failure:
            together = one_pass(offers, self._known)
            if failure.code not in COMBINATION_REFUSED or together == self._known:
                raise
            watch, refused = watch_most(self._groups, self._group, together, terms, since, self._latest)
        if watch is None:
            raise next(iter(refused.values()))
        self.watch = watch
        self.absences = {id_: Absence.NOT_SUPPORTED for id_ in self.wanted if id_ not in watch.ids}
        self.absences |= {id_: failure.absence for id_, failure in refused.items()}
        self.problems = self._left_out(together)

    def _left_out(self, together: Sequence[int]) -> tuple[Problem, ...]:
        names = [name for name, id_ in IDS.items() if id_ in self._known and id_ not in together]
        if not names:
            return ()
        what = f"{', '.join(names)} of {self._board} cannot be measured"
        return (Problem(what, "the GPU cannot measure them in one pass with the others", "", self._board.entity),)


def _pulse(rows: Iterable[FieldSample]) -> _Pulse:
    engines = [row for row in rows if row.field in _ENGINES and row.status == 0]
    valid = [row for row in engines if blank_of(row.field, row.value) is None]
    last = {(row.entity, row.field): row for row in engines}
    return _Pulse(
        [(SPECS[row.field].field, float(row.value or 0.0)) for row in valid],
        bool(last),
        bool(last) and all(blank_of(row.field, row.value) is not None for row in last.values()),
    )


class Offer(NamedTuple):
    """One metric group."""

    major: int
    minor: int
    fields: frozenset[int]


def offers_of(session: Session, gpu: int) -> tuple[Offer, ...]:
    """The metric groups of this GPU, not of any other (field case 27). Raises CallFailed."""
    answer = session.call("dcgmProfGetSupportedMetricGroups", gpu)
    groups = answer.metricGroups[: answer.numMetricGroups]
    return tuple(Offer(g.majorId, g.minorId, frozenset(g.fieldIds[: g.numFieldIds])) for g in groups)


def offered(offers: Sequence[Offer], wanted: Sequence[int]) -> tuple[int, ...]:
    """The wanted fields that there are, in the order of ``wanted``."""
    every = frozenset[int]().union(*(offer.fields for offer in offers))
    return tuple(field for field in wanted if field in every)


def one_pass(offers: Sequence[Offer], wanted: Sequence[int]) -> tuple[int, ...]:
    """The wanted fields that fit together: of each major id, the group with the field that is wanted most."""
    best: dict[int, Offer] = {}
    for offer in sorted(offers, key=lambda offer: _rank(offer, wanted)):
        best.setdefault(offer.major, offer)
    return offered(tuple(best.values()), wanted)


def _rank(offer: Offer, wanted: Sequence[int]) -> int:
    return min((place for place, field in enumerate(wanted) if field in offer.fields), default=len(wanted))
