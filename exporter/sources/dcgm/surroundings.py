"""One look at everything around the GPUs that a hostengine knows: links, NVSwitches, CPUs."""

from __future__ import annotations

from collections.abc import Iterable

from exporter.model import Entity, Fabric, LinkState, Part, PartKind
from exporter.sources.dcgm.entities import GpuEntity
from exporter.sources.dcgm.groups import Groups
from exporter.sources.dcgm.links import LinkStates
from exporter.sources.dcgm.parts import Parts
from exporter.sources.dcgm.sxids import Sxids
from exporter.sources.dcgm.timeline import TimeLine

LOOK_INTERVAL = 5.0  # seconds: nothing of it is needed faster, and link states cost the driver a call for each link


class Surroundings:
    """Of one connection. Raises CallFailed for a lost connection only."""

    def __init__(self, groups: Groups, interval: float, sxids: Sxids) -> None:
        self._interval = max(LOOK_INTERVAL, interval)
        self.links = LinkStates(groups.session, self._interval)
        self._parts = [Parts(kind, groups, self._interval, sxids) for kind in PartKind]
        self._looked = float("-inf")

    def look(self, line: TimeLine, boards: Iterable[GpuEntity]) -> Fabric | None:
        """None: it is not due. After the GPUs were read: these tell the hostengine's time."""
        if line.now - self._looked < self._interval or not line.measured:
            return None
        self._looked = line.now
        readings = [reading for parts in self._parts for reading in parts.look(line)]
        parts = [part for each in self._parts for part in each.parts]
        links: dict[Entity | Part, dict[int, LinkState]] = {
            board.entity: dict(self.links.gpus[board.number]) for board in boards if board.number in self.links.gpus
        }
        for number, states in self.links.switches.items():
            links[Part(PartKind.NVSWITCH, number)] = dict(states)
        return Fabric(line.now, self._interval, parts, readings, links)
