"""The states of NVLink links: of each GPU, and of each NVSwitch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from exporter.model import LinkState
from exporter.sources.dcgm.errors import CallFailed
from exporter.sources.dcgm.session import Session

_STATES = {1: LinkState.DISABLED, 2: LinkState.DOWN, 3: LinkState.UP}  # dcgmNvLinkLinkState_t; 0: no such link

States = Mapping[int, Mapping[int, LinkState]]
"""By DCGM's number of the GPU or switch, and the link's; without those that have no link."""


class LinkStates:
    """Asked for at ``interval``. Bindings of another release than the library cannot ask: their struct is refused."""

    def __init__(self, session: Session, interval: float) -> None:
        self._session = session
        self._interval = interval
        self.asked = float("-inf")
        self.gpus: States = {}
        self.switches: States = {}
        self.refused: CallFailed | None = None

    def ask(self, now: float) -> None:
        """When it is due. Raises CallFailed for a lost connection."""
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
        """How many links of this GPU are up, as of ``asked``; None for one without NVLink."""
        states = self.gpus.get(gpu)
        return None if states is None else sum(state is LinkState.UP for state in states.values())


def _states(owners: Iterable[Any]) -> States:
    found = {}
    for owner in owners:
        links = {link: _STATES[raw] for link, raw in enumerate(owner.linkState) if raw in _STATES}
        if links:
            found[int(owner.entityId)] = links
    return found
