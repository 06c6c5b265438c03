"""How many NVLink links of each GPU are up."""

from __future__ import annotations

from collections.abc import Mapping

from exporter.sources.dcgm.errors import CallFailed
from exporter.sources.dcgm.session import Session

_NOT_SUPPORTED, _UP = 0, 3  # dcgmNvLinkLinkState_t


class Links:
    """Asked for at ``interval``. Bindings of another release than the library cannot ask: their struct is refused."""

    def __init__(self, session: Session, interval: float) -> None:
        self._session = session
        self._interval = interval
        self.asked = float("-inf")
        self._up: dict[int, int] = {}
        self.refused: CallFailed | None = None

    def up(self, now: float) -> Mapping[int, int]:
        """By DCGM's id of the GPU, as of ``asked``; one without NVLink is left out. Raises CallFailed for a lost
        connection."""
        if self.refused is None and now - self.asked >= self._interval:
            self.asked = now
            try:
                status = self._session.call("dcgmGetNvLinkLinkStatus")
            except CallFailed as failure:
                if failure.connection_lost:
                    raise
                self.refused, self._up = failure, {}
                return self._up
            self._up = {
                int(gpu.entityId): sum(state == _UP for state in gpu.linkState)
                for gpu in status.gpus[: status.numGpus]
                if any(state != _NOT_SUPPORTED for state in gpu.linkState)
            }
        return self._up
