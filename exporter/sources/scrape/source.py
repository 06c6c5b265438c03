"""The source ``dcgm-exporter``: reads the page of an exporter that already runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from exporter.fields import CLOCK_EVENTS, FIELDS, Kind
from exporter.model import Absence, Batch, Device, Entity, Problem, Reading
from exporter.sources.scrape.client import Fetcher, Page
from exporter.sources.scrape.errors import no_gpus
from exporter.sources.scrape.gathering import Gathered, Value, gather
from exporter.sources.scrape.identity import GpuLabels
from exporter.sources.scrape.pace import ReadPace
from exporter.sources.scrape.target import parse_target
from exporter.sources.scrape.text import parse
from exporter.trust import range_fault

TIMEOUT = 0.8  # seconds: within the default sampling interval of one
_KNOWN_EVENTS = sum(CLOCK_EVENTS)


class ExporterSource:
    """Scrapes another exporter's /metrics once a read, and turns it into readings.

    What it cannot know, and what follows:

    - Ratios and rates on the page are means over a window that the page does not state. Each is taken as the mean from
      the end of the previous read to this one. The first read of a GPU has no such interval and gives none of them.
      After an outage only the usual time between reads is counted; what was in between stays unknown.
    - dcgm-exporter collects every 30 seconds unless configured otherwise (``-c``, in milliseconds). Between collections
      the same page comes again, and counts again. Profiling values, which DCGM averages between collections, come late
      by that time, and their totals are right over minutes; the claim is one sample of at most a second for all of
      it. Shorter stalls are not seen. For more, lower ``-c``.
    - Of Xid errors only a change of the code is seen: of two equal ones in a row the second is not (field case 40).
    """

    name = "dcgm-exporter"

    def __init__(self, url: str, *, timeout: float = TIMEOUT, fetch: Callable[[], Page] | None = None) -> None:
        """``timeout``: seconds for one whole fetch. ``fetch`` replaces HTTP. ValueError: the URL is not one."""
        self._target = parse_target(url)
        self._fetch = fetch or Fetcher(self._target, timeout)
        self._pace = ReadPace()
        self._xids = LastXids()

    def read(self, now: float) -> Batch:
        """Fetch the page and read it. SourceError when there is none, or no GPU on it."""
        self._pace.tried(now)
        exposition = parse(self._fetch().text)
        page = gather(exposition)
        if not page.rows:
            raise no_gpus(self._target, exposition)
        rejected = dict(page.rejected)
        readings = list(self._readings(page, now, rejected))
        self._pace.ended(page.rows, now)
        return Batch(
            source=self.name,
            end=now,
            devices=tuple(_devices(page)),
            readings=readings,
            problems=(*page.problems, *self._lacking(page)),
            rejected=rejected,
            details={"url": str(self._target)},
        )

    def close(self) -> None:
        """Nothing is held open."""

    def _readings(self, page: Gathered, now: float, rejected: dict[tuple[str, str], int]) -> Iterator[Reading]:
        starts = {entity: self._pace.start(entity, now) for entity in page.rows}
        codes: dict[Entity, Value] = {}
        for (entity, field), value in page.values.items():
            kind = FIELDS[field].kind
            if kind is Kind.EVENT:
                codes[entity] = value
            elif kind is Kind.ACTIVE:
                yield from _clock_events(entity, value, now, rejected)
            elif kind in (Kind.RATIO, Kind.RATE):
                if starts[entity] is not None:
                    yield _reading(entity, field, now, value, starts[entity])
            else:
                yield _reading(entity, field, now, value)
        known = frozenset(entity for entity in page.rows if self._pace.known(entity))
        yield from self._xids.readings(codes, known, now)

    def _lacking(self, page: Gathered) -> Iterator[Problem]:
        """One problem for the whole page: the most important field is off in that exporter's default file."""
        if any(field == "sm" for _, field in page.values):
            return
        yield Problem(
            "SM active is not known",
            f"the page of {self._target} has no DCGM_FI_PROF_SM_ACTIVE (DCGM_FI_PROF_SM_UTIL_RATIO since 4.9)",
            "where the GPU has it, enable the DCGM_FI_PROF_* lines in that exporter's counters file (-f)",
        )


def _devices(page: Gathered) -> Iterator[Device]:
    fields: dict[Entity, set[str]] = {entity: set() for entity in page.rows}
    for entity, field in page.values:
        fields[Entity(entity.uuid) if field == "xid" else entity].add(field)
    cut = {entity.uuid for entity in page.rows if entity.gpu_instance is not None}
    for entity, row in page.rows.items():
        yield _device(row, frozenset(fields[entity]), entity.gpu_instance is None and entity.uuid in cut)


def _device(row: GpuLabels, fields: frozenset[str], mig_enabled: bool) -> Device:
    return Device(
        entity=row.entity,
        index=row.gpu,
        fields=fields,
        model=row.model,
        pci_bus_id=row.pci_bus_id,
        driver_version=row.driver_version,
        mig_profile=row.mig_profile,
        mig_enabled=mig_enabled,
    )


def _reading(entity: Entity, field: str, end: float, value: Value, start: float | None = None) -> Reading:
    if isinstance(value, Absence):
        return Reading(entity, field, end, None, start, value)
    return Reading(entity, field, end, value, start)


def _clock_events(entity: Entity, value: Value, now: float, rejected: dict[tuple[str, str], int]) -> Iterator[Reading]:
    """A bit mask as 0 or 1 for each reason that has a name here; bits without one are counted."""
    if isinstance(value, Absence):
        yield Reading(entity, "clock_event", now, None, absence=value)
        return
    if value < 0 or not value.is_integer():
        yield Reading(entity, "clock_event", now, None, absence=Absence.OUT_OF_RANGE)
        return
    mask = int(value)
    if mask & ~_KNOWN_EVENTS:
        key = ("clock_event", "unknown_reason")
        rejected[key] = rejected.get(key, 0) + 1
    for bit, label in CLOCK_EVENTS.items():
        yield Reading(entity, "clock_event", now, float(bool(mask & bit)), label=label)


class LastXids:
    """Turns a gauge that holds the last Xid code into events. Remembers the last code of each board and instance.

    dcgm-exporter prints the code of the last Xid until it restarts (field case 40), and nothing before the first. An
    event is a change to a code other than 0. A second Xid with the same code changes nothing, so it cannot be seen. The
    code in the first read is of unknown age and is not an event.
    """

    def __init__(self) -> None:
        self._last: dict[Entity, float] = {}

    def readings(
        self, found: Mapping[Entity, float | Absence], known: frozenset[Entity], now: float
    ) -> Iterator[Reading]:
        """Events since the last read, one for each new code of a board, on the board; else why there is no code.

        ``found``: what was printed, by the entity of the row. ``known``: entities of which there was an earlier read.
        """
        events: dict[tuple[str, str], Reading] = {}
        for entity, code in found.items():
            board = Entity(entity.uuid)
            if isinstance(code, Absence):
                yield Reading(board, "xid", now, None, absence=code)
            elif not code.is_integer():
                yield Reading(board, "xid", now, None, absence=Absence.NOT_A_NUMBER)
            elif (fault := range_fault(FIELDS["xid"], code)) is not None:
                yield Reading(board, "xid", now, None, absence=fault)
            else:
                changed = code != self._last.get(entity, 0.0)
                self._last[entity] = code
                if changed and code and entity in known:
                    label = str(int(code))
                    events[(entity.uuid, label)] = Reading(board, "xid", now, 1.0, label=label)
        yield from events.values()
