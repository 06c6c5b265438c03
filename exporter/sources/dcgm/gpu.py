"""One GPU: everything that is watched of it and of its instances, and its readings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from exporter.fields import CLAIM, LINKS, TENSOR_PIPES, Kind
from exporter.model import Absence, Device, Entity, Problem, Reading
from exporter.sources.dcgm.entities import GpuEntity
from exporter.sources.dcgm.errors import CallFailed, Code
from exporter.sources.dcgm.groups import EntityGroup, Groups
from exporter.sources.dcgm.latest import Latest
from exporter.sources.dcgm.measurement import ENGINES, Measurement
from exporter.sources.dcgm.neighbours import Neighbours
from exporter.sources.dcgm.second_counters import NvlinkCount, PcieTotals
from exporter.sources.dcgm.session import GPU, GPU_INSTANCE
from exporter.sources.dcgm.timeline import TimeLine
from exporter.sources.dcgm.tracks import Tracks
from exporter.sources.dcgm.values import IDS, NATIVE_BYTES, NVLINK_THROUGHPUT, SPECS, FieldSample, blank_of
from exporter.sources.dcgm.watches import Terms, Unread, Watch, watch_most
from exporter.trust import THRESHOLDS

CONTEXT_PACE = 1.0  # seconds: power, clocks and memory are not read faster than that, ...
SLOW_PACE = 5.0  # ... and what hardly changes not faster than that
SETTLED = 0.85  # seconds before instants are returned again: the pipeline holds each a little longer

_ENGINE_IDS = tuple(IDS[name] for name in (*ENGINES, *TENSOR_PIPES) if name in IDS)
_LINK_IDS = (*(IDS[name] for name in LINKS), *NATIVE_BYTES)
_CLAIM_IDS = tuple(IDS[name] for name in CLAIM)
_CONTEXT_IDS = tuple(
    IDS[name] for name in ("power", "energy", "sm_clock", "memory_clock", "clock_event", "memory_used", "memory_free")
)
_EVENT_IDS = tuple(id_ for id_, spec in SPECS.items() if spec.kind is Kind.EVENT)
_SLOW_IDS = tuple(
    id_ for id_ in SPECS if id_ not in (*_CLAIM_IDS, *_ENGINE_IDS, *_LINK_IDS, *_CONTEXT_IDS, *_EVENT_IDS)
)
_WATCHED_CONTEXT_IDS = (*_CONTEXT_IDS, NVLINK_THROUGHPUT)
_MEMORY_IDS = tuple(IDS[name] for name in ("memory_total", "memory_free", "memory_used", "memory_reserved"))


@dataclass
class _Plain:
    """Fields of the driver: the claim, or the context."""

    entities: tuple[Entity, ...]
    watch: Watch | None
    refused: Mapping[int, CallFailed]
    settled: float = float("-inf")
    """When its instants were last returned."""


@dataclass
class _Measured:
    """Profiling fields."""

    entities: tuple[Entity, ...]
    measurement: Measurement
    begun: float
    """When it was armed: silence counts from here."""


@dataclass
class GpuReading:
    """The result of one read of one GPU."""

    devices: list[Device]
    readings: list[Reading]
    problems: list[Problem]
    blank: bool
    """Nothing of it has a value: it may be lost."""


class WatchedGpu:
    """One GPU, watched from construction until ``close``. Raises CallFailed if the GPU or the hostengine refuses."""

    def __init__(
        self,
        groups: Groups,
        latest: Latest,
        neighbours: Neighbours,
        board: GpuEntity,
        interval: float,
        now: float,
    ) -> None:
        self.board = board
        self._groups, self._latest, self._neighbours = groups, latest, neighbours
        self._interval = interval
        self._entity_groups: list[EntityGroup] = []
        self._plain: list[_Plain] = []
        self._measured: list[_Measured] = []
        self._devices_of: object = None
        self._devices: list[Device] = []
        self._pcie = PcieTotals(board.entity)
        self._nvlink = NvlinkCount()
        instances = {(GPU_INSTANCE, each.number): Entity(board.uuid, each.id) for each in board.instances}
        self._tracks = Tracks({(GPU, board.number): board.entity, **instances})
        try:
            self._watch(tuple(instances.values()), now)
        except CallFailed as failure:
            if not failure.connection_lost:
                self.close()
            raise

    def read(self, line: TimeLine, paused: Callable[[], bool], links: Reading | None) -> GpuReading:
        """Everything since the last read. ``paused``: asks the hostengine whether profiling is; ``links``: how many
        NVLink links are up, where that is known. Raises CallFailed."""
        self._arm(line.now)
        rows: list[FieldSample] = []
        readings = [reading for plain in self._plain for reading in self._read_plain(plain, line, rows)]
        busy = max((r.value for r in readings if r.field == "busy" and r.value is not None), default=None)
        for measured in self._measured:
            readings += self._read_measured(measured, busy, line, paused)
        if self.board.cut:
            readings += [_absent(self.board.entity, name, line.now, Absence.NOT_SUPPORTED) for name in CLAIM]
        problems = [problem for each in self._measured for problem in each.measurement.problems]
        devices = self._listed()
        if links is not None:
            readings.append(links)
            devices[0] = replace(devices[0], fields=devices[0].fields | {links.field})
        return GpuReading(devices, readings, problems, _all_blank(rows))

    @property
    def crowded(self) -> float | None:
        """Seconds between samples, where another client wants some of them faster than this one."""
        watches = (*(each.watch for each in self._plain), *(each.measurement.watch for each in self._measured))
        found = [watch.crowded for watch in watches if watch is not None and watch.crowded is not None]
        return min(found, default=None)

    def close(self) -> None:
        """Ends its watches, not the connection. Raises CallFailed for a lost connection."""
        for plain in self._plain:
            if plain.watch is not None:
                plain.watch.stop()
        for measured in self._measured:
            measured.measurement.drop()
        for group in self._entity_groups:
            self._groups.drop_entities(group)

    def _watch(self, instances: tuple[Entity, ...], now: float) -> None:
        board = (self.board.entity,)
        group = self._group(GPU, [self.board.number])
        since = self._groups.session.hostengine_now(self.board.number)
        self._neighbours.before(self._groups, group, since)
        context = Terms.of_instants(max(CONTEXT_PACE, self._interval))
        if not self.board.cut:
            self._add_plain(board, group, _CLAIM_IDS, Terms.of_means(self._interval), since)
        self._add_plain(board, group, _WATCHED_CONTEXT_IDS, context, since)
        self._add_plain(board, group, _SLOW_IDS, Terms.of_instants(max(SLOW_PACE, self._interval)), since)
        self._add_plain(board, group, _EVENT_IDS, Terms.of_events(context.pace), since)
        if self.board.cut:
            self._add_measured(board, "PCIe and NVLink traffic", group, _LINK_IDS, now)
        else:
            self._add_measured(board, "profiling", group, (*_ENGINE_IDS, *_LINK_IDS), now)
        if instances:
            group = self._group(GPU_INSTANCE, [each.number for each in self.board.instances])
            self._add_plain(instances, group, _MEMORY_IDS, context, since)
            self._add_measured(instances, "profiling of the MIG instances", group, _ENGINE_IDS, now)

    def _group(self, kind: int, numbers: Iterable[int]) -> EntityGroup:
        group = self._groups.of_entities(kind, numbers)
        self._entity_groups.append(group)
        return group

    def _add_plain(
        self, entities: tuple[Entity, ...], group: EntityGroup, ids: Sequence[int], terms: Terms, since: int
    ) -> None:
        self._plain.append(_Plain(entities, *watch_most(self._groups, group, ids, terms, since, self._latest)))

    def _add_measured(
        self, entities: tuple[Entity, ...], what: str, group: EntityGroup, ids: Sequence[int], now: float
    ) -> None:
        measurement = Measurement(self.board, what, self._groups, group, ids, self._latest)
        self._measured.append(_Measured(entities, measurement, now))

    def _arm(self, now: float) -> None:
        """Make the profiling watches that are missing or dead."""
        for measured in self._measured:
            measurement = measured.measurement
            if not measurement.due(now):
                continue
            since = self._groups.session.hostengine_now(self.board.number)
            measurement.ensure(Terms.of_means(self._interval), since, now)
            measured.begun = now
            self._tracks.cut(measurement.wanted)
            self._pcie.cut()

    def _read_plain(self, plain: _Plain, line: TimeLine, rows: list[FieldSample]) -> list[Reading]:
        readings: list[Reading] = []
        watch, fresh = plain.watch, list[FieldSample]()
        if watch is not None:
            fresh = watch.read(line)
            _still_watched(fresh)
            rows += fresh
            self._nvlink.note(fresh)
            readings += self._tracks.feed(fresh, watch.terms.interval, line.place)
        now, delivered = line.now, _delivered(readings)
        instants = watch is None or watch.terms.unread is Unread.NOTHING
        if instants and not fresh and now - plain.settled < SETTLED:
            return readings
        plain.settled = now
        for entity in plain.entities:
            if watch is not None:
                readings += self._tracks.settle(entity, watch.ids, watch.terms.interval, now, delivered)
            refused = ((SPECS[id_].field, why) for id_, why in plain.refused.items() if id_ in SPECS)
            readings += [_absent(entity, name, now, why.absence) for name, why in refused]
        return readings

    def _read_measured(
        self,
        measured: _Measured,
        busy: float | None,
        line: TimeLine,
        paused: Callable[[], bool],
    ) -> list[Reading]:
        measurement, readings = measured.measurement, list[Reading]()
        watch = measurement.watch
        if watch is not None:
            fresh = watch.read(line)
            _still_watched(fresh)
            readings = self._tracks.feed(fresh, watch.terms.interval, line.place)
            readings = self._pcie.prefer(fresh, watch.terms.interval, line.place, readings)
            readings = self._nvlink.check(readings)
            last = max(self._tracks.last(entity, watch.ids) or measured.begun for entity in measured.entities)
            silent = line.now - max(last, measured.begun) > THRESHOLDS.silent_intervals * watch.terms.interval
            measurement.observe(fresh, busy, line.now, silent=silent)
        now, delivered = line.now, _delivered(readings)
        for entity in measured.entities:
            if watch is not None:
                readings += self._tracks.settle(entity, watch.ids, watch.terms.interval, now, delivered)
            absences = ((SPECS[id_].field, why) for id_, why in measurement.absences.items() if id_ in SPECS)
            readings += [_absent(entity, name, now, why) for name, why in absences]
        if not (measurement.blank and paused()):
            return readings
        measurement.excuse(now)
        return _as_paused(readings)

    def _listed(self) -> list[Device]:
        """The board and its instances. They are the same as before unless other fields are watched."""
        watched = tuple(watch.ids for plain in self._plain if (watch := plain.watch) is not None)
        state = (watched, tuple(measured.measurement.expected for measured in self._measured))
        if state != self._devices_of:
            self._devices_of, self._devices = state, self.board.devices(self._expected)
        return list(self._devices)

    def _expected(self, entity: Entity) -> frozenset[str]:
        ids: list[int] = []
        for plain in self._plain:
            if entity in plain.entities and plain.watch is not None:
                ids += plain.watch.ids
        for measured in self._measured:
            if entity in measured.entities:
                ids += measured.measurement.expected
        return frozenset(SPECS[id_].field for id_ in ids if id_ in SPECS)


def _absent(entity: Entity, name: str, now: float, absence: Absence) -> Reading:
    return Reading(entity, name, now, None, absence=absence)


def _delivered(readings: Iterable[Reading]) -> frozenset[tuple[Entity, str]]:
    return frozenset((reading.entity, reading.field) for reading in readings)


def _as_paused(readings: list[Reading]) -> list[Reading]:
    """A blank carries no reason; here the hostengine has reported the pause."""
    return [r._replace(absence=Absence.PAUSED) if r.absence is Absence.BLANK else r for r in readings]


def _still_watched(rows: Iterable[FieldSample]) -> None:
    """Others can end our watches: an operator, or the hostengine when instances come and go."""
    if any(row.status == Code.NOT_WATCHED for row in rows):
        raise CallFailed("dcgmGetLatestValues_v2", Code.NOT_WATCHED, "the fields are no longer watched")


def _all_blank(rows: Iterable[FieldSample]) -> bool:
    """Whether the whole context is blank, which it never is for a GPU that answers."""
    context = [row for row in rows if row.field in _CONTEXT_IDS]
    return bool(context) and all(row.status != 0 or blank_of(row.field, row.value) is not None for row in context)
