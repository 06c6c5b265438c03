"""The fabric, as one hostengine reports it: states of NVLink links, NVSwitches, and Grace CPUs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from exporter.model import Entity, Fabric, LinkState, Part, PartKind
from exporter.sources.dcgm.entities import GpuEntity
from exporter.sources.dcgm.errors import CallFailed
from exporter.sources.dcgm.groups import Groups
from exporter.sources.dcgm.parts import Parts, Sxids
from exporter.sources.dcgm.session import Session
from exporter.sources.dcgm.timeline import TimeLine

_STATES = {1: LinkState.DISABLED, 2: LinkState.DOWN, 3: LinkState.UP}  # dcgmNvLinkLinkState_t; 0: no such link

States = Mapping[int, Mapping[int, LinkState]]
"""GPU or switch number in DCGM -> link number -> state. GPUs and switches without links are left out."""


class LinkStates:
    """States of all NVLink links, read every ``interval`` seconds (dcgmGetNvLinkLinkStatus).

    Bindings of another release than the library cannot read them: DCGM refuses their struct.
    """

    def __init__(self, session: Session, interval: float) -> None:
        self._session = session
        self._interval = interval
        self.asked = float("-inf")
        self.gpus: States = {}
        self.switches: States = {}
        self.refused: CallFailed | None = None

    def ask(self, now: float) -> None:
        """Read them if it is time to. Raises CallFailed for a lost connection."""
        if self.refused is not None or now - self.asked < self._interval:
            return
        self.asked = now
        try:
            status = self._session.call("dcgmGetNvLinkLinkStatus")
        except CallFailed as failure:
            if failure.connection_lost:
                raise
            self.refused, self.gpus, self.switches = failure, {}, {}
            return
        self.gpus = _states(status.gpus[: status.numGpus])
        self.switches = _states(status.nvSwitches[: status.numNvSwitches])

    def up(self, gpu: int) -> int | None:
        """The number of links of this GPU that were up at ``asked``; None without NVLink."""
        states = self.gpus.get(gpu)
        return None if states is None else sum(state is LinkState.UP for state in states.values())


def _states(owners: Iterable[Any]) -> States:
    found = {}
    for owner in owners:
        links = {link: _STATES[raw] for link, raw in enumerate(owner.linkState) if raw in _STATES}
        if links:
            found[int(owner.entityId)] = links
    return found


POLL_INTERVAL = 5.0  # seconds: nothing here is needed faster, and link states cost the driver a call for each link


class FabricReader:
    """The fabric of one connection. Raises CallFailed only for a lost connection."""

    def __init__(self, groups: Groups, interval: float, sxids: Sxids) -> None:
        self._interval = max(POLL_INTERVAL, interval)
        self.links = LinkStates(groups.session, self._interval)
        self._parts = [Parts(kind, groups, self._interval, sxids) for kind in PartKind]
        self._read_at = float("-inf")

    def read(self, line: TimeLine, boards: Iterable[GpuEntity]) -> Fabric | None:
        """None until the next poll is due. Call it after reading the GPUs: their samples give the hostengine's time."""
        if line.now - self._read_at < self._interval or not line.measured:
            return None
        self._read_at = line.now
        readings = [reading for parts in self._parts for reading in parts.read(line)]
        parts = [part for each in self._parts for part in each.parts]
        links: dict[Entity | Part, dict[int, LinkState]] = {
            board.entity: dict(self.links.gpus[board.number]) for board in boards if board.number in self.links.gpus
        }
        for number, states in self.links.switches.items():
            links[Part(PartKind.NVSWITCH, number)] = dict(states)
        return Fabric(line.now, self._interval, parts, readings, links)
