"""One connection's view of the node: the GPUs that exist now, each with its watches."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

from exporter.background.backoff import Backoff
from exporter.model import Device, Fabric, Problem, Reading
from exporter.sources.dcgm.entities import EntityList, GpuEntity, Layout, discover, listing
from exporter.sources.dcgm.errors import CallFailed
from exporter.sources.dcgm.fabric import FabricReader
from exporter.sources.dcgm.gpu import WatchedGpu
from exporter.sources.dcgm.groups import Groups
from exporter.sources.dcgm.latest import Latest
from exporter.sources.dcgm.neighbours import Neighbours
from exporter.sources.dcgm.parts import Sxids
from exporter.sources.dcgm.session import Session
from exporter.sources.dcgm.timeline import TimeLine
from exporter.sources.dcgm.watches import Terms

log = logging.getLogger(__name__)
LIST_INTERVAL = 10.0  # seconds between lists of GPUs and MIG instances: one request ...
LIST_AGAIN = 1.0  # ... and after a GPU has no values at all
DISCOVERY_INTERVAL = 60.0  # seconds after which each GPU is identified again although the list has not changed
_MODULE_PROFILING, _MODULE_PAUSED = 8, 5  # dcgmModuleId_t, dcgmModuleStatus_t


@dataclass
class NodeReading:
    """The result of one read of all GPUs."""

    devices: list[Device] = field(default_factory=list)
    readings: list[Reading] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    fabric: Fabric | None = None


class Node:
    """Raises CallFailed only for a lost connection: make a new Node then."""

    def __init__(self, session: Session, interval: float, known: dict[int, str], sxids: Sxids) -> None:
        """Kept from connection to connection: ``known``, the UUIDs of GPUs by DCGM's id, and ``sxids``."""
        self.session = session
        self._interval = interval
        self._known = known
        self._groups = Groups(session)
        self._latest = Latest(self._groups)
        self.neighbours = Neighbours(Terms.of_means(interval).interval)
        self._fabric = FabricReader(self._groups, interval, sxids)
        self._layout = Layout(())
        self._listed_at = self._discovered = float("-inf")
        self._listing: EntityList | None = None
        self._gpus: dict[int, WatchedGpu] = {}
        self._paused: bool | None = None
        self._failures: dict[int, CallFailed] = {}
        self._backoffs: dict[int, Backoff] = {}

    @property
    def empty(self) -> bool:
        """The hostengine lists no GPU, not even one that fails."""
        return self._layout.listed == 0

    def read(self, line: TimeLine) -> NodeReading:
        """Everything since the last read, of every GPU that answers; the others become problems."""
        if line.now - self._listed_at >= LIST_INTERVAL:
            self._list(line)
        self._latest.refresh(line.now)
        reading = NodeReading(problems=[*self._layout.problems, *self._version_problems()])
        self._fabric.links.ask(line.now)
        self._paused = None
        for board in self._layout.boards:
            try:
                self._read_gpu(board, line, self._links_of(board), reading)
            except CallFailed as failure:
                if failure.connection_lost:
                    raise
                self._drop_failed(board, failure, line.now)
            if board.number in self._failures:
                failed = self._failures[board.number]
                reading.devices += board.devices(lambda _: frozenset())
                reading.problems.append(Problem(f"{board} cannot be read", failed.reason, failed.remedy, board.entity))
        crowded = {str(gpu.board): gpu.crowded for gpu in self._gpus.values() if gpu.crowded is not None}
        self.neighbours.watch(crowded)
        reading.fabric = self._fabric.read(line, self._layout.boards)
        return reading

    def _read_gpu(self, board: GpuEntity, line: TimeLine, links: Reading | None, reading: NodeReading) -> None:
        backoff = self._backoffs.setdefault(board.number, Backoff(LIST_INTERVAL, 300.0))
        gpu = self._gpus.get(board.number)
        if gpu is None:
            if not backoff.due(line.now):
                return
            gpu = self._gpus[board.number] = WatchedGpu(
                self._groups, self._latest, self.neighbours, board, self._interval, line.now
            )
        got = gpu.read(line, self._is_paused, links)
        backoff.worked()
        self._failures.pop(board.number, None)
        reading.devices += got.devices
        reading.readings += got.readings
        reading.problems += got.problems
        if got.blank and line.now - self._listed_at >= LIST_AGAIN:
            self._listed_at = self._discovered = float("-inf")

    def _links_of(self, board: GpuEntity) -> Reading | None:
        links = self._fabric.links
        count = links.up(board.number)
        return None if count is None else Reading(board.entity, "nvlink_links_up", links.asked, float(count))

    def _list(self, line: TimeLine) -> None:
        """Get the hostengine's list of GPUs, and its time. The GPUs are identified again if the list has changed, if
        there is a problem, and every DISCOVERY_INTERVAL."""
        now, before = line.now, self._listing
        self._listed_at, self._listing = now, listing(self.session)
        unsure = before != self._listing or bool(self._layout.problems)
        if unsure or now - self._discovered >= DISCOVERY_INTERVAL:
            self._discover(now)
        if self._layout.boards:
            line.measure(self.session.hostengine_now(self._layout.boards[0].number))

    def _discover(self, now: float) -> None:
        """GPUs that are gone or have changed lose their watches; the others keep theirs."""
        layout = discover(self.session, self._known)
        self._discovered = now
        found = {board.number: board for board in layout.boards}
        for number, gpu in list(self._gpus.items()):
            if found.get(number) != gpu.board:
                log.info("%s has changed or gone", gpu.board)
                del self._gpus[number]
                gpu.close()
        for number in [number for number in self._failures if number not in found]:
            del self._failures[number], self._backoffs[number]
        self._known.update((board.number, board.uuid) for board in layout.boards)
        self._layout = layout

    def _drop_failed(self, board: GpuEntity, failure: CallFailed, now: float) -> None:
        """Leave this GPU out until its backoff ends; then it is watched again."""
        log.warning("%s cannot be read: %s", board, failure)
        self._failures[board.number] = failure
        self._backoffs[board.number].failed(now)
        gpu = self._gpus.pop(board.number, None)
        if gpu is not None:
            gpu.close()

    def _is_paused(self) -> bool:
        """Asked at most once per read. A pause of profiling alone may not show here: then the values stay blank."""
        if self._paused is None:
            try:
                answer = self.session.call("dcgmModuleGetStatuses")
            except CallFailed as failure:
                if failure.connection_lost:
                    raise
                return False
            modules = answer.statuses[: answer.numStatuses]
            self._paused = any(m.id == _MODULE_PROFILING and m.status == _MODULE_PAUSED for m in modules)
        return self._paused

    def _version_problems(self) -> list[Problem]:
        session = self.session
        bindings, library, hostengine = session.bindings, session.library_version, session.hostengine_version
        problems = []
        if not bindings.fit(library):
            why = f"the bindings ({bindings.origin}) were made for DCGM {bindings.version}, the library is {library}"
            missing = "; NVLink link states are not read" if self._fabric.links.refused else ""
            remedy = "use the bindings of the installed DCGM: --dcgm.bindings DIR"
            problems.append(Problem("DCGM's bindings and library are of different releases", why + missing, remedy))
        if hostengine and library and hostengine.split(".")[0] != library.split(".")[0]:
            why = f"the library here is {library}, the hostengine at {session.address} is {hostengine}"
            remedy = "install the same major release of DCGM here and at the hostengine"
            problems.append(Problem("DCGM's library and hostengine are of different releases", why, remedy))
        return problems
