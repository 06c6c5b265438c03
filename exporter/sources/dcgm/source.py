"""The source `dcgm`: connects, reads, and connects again when the hostengine has been away."""

from __future__ import annotations

import contextlib
import logging

from exporter.model import Batch, SourceError
from exporter.sources.dcgm.address import parse_address
from exporter.sources.dcgm.bindings import Bindings
from exporter.sources.dcgm.errors import CallFailed
from exporter.sources.dcgm.neighbours import Neighbours
from exporter.sources.dcgm.node import Node
from exporter.sources.dcgm.parts import Sxids
from exporter.sources.dcgm.session import open_session, shut_down
from exporter.sources.dcgm.timeline import TimeLine

log = logging.getLogger(__name__)
TIMEOUT = 2.0  # seconds to wait for a connection; DCGM itself waits up to 60 s for each answer


class DcgmSource:
    """Reads one hostengine, or runs one in this process. Used by one thread.

    Whatever fails, the next read goes on from there: it connects, lists GPUs and makes the watches again. Native
    totals are differences, so that counters go on after it.
    """

    name = "dcgm"

    def __init__(self, address: str, *, bindings: Bindings, interval: float, timeout: float = TIMEOUT) -> None:
        """``address``: HOST:PORT, unix:PATH or embedded; ValueError for another. ``interval``: seconds between reads,
        0.1 at least. ``timeout``: seconds for a connection. Nothing is opened before the first read."""
        self._address = parse_address(address)
        self._bindings = bindings
        self._interval = interval
        self._timeout = timeout
        self._line = TimeLine()
        self._known: dict[int, str] = {}
        self._sxids = Sxids()
        self._node: Node | None = None
        self._loaded = False

    @property
    def neighbours(self) -> Neighbours | None:
        """Other clients of the hostengine; None while there is no connection."""
        return None if self._node is None else self._node.neighbours

    def read(self, now: float) -> Batch:
        """Everything since the last read. Raises SourceError when the hostengine as a whole cannot be read."""
        self._line.begin(now)
        try:
            node = self._node or self._connect()
            reading = node.read(self._line)
        except CallFailed as failure:
            self._disconnect()
            message = f"lost the hostengine at {self._address}: {failure}"
            raise SourceError(message, failure.remedy) from failure
        if node.empty:
            why = "".join(f"; {problem.what}: {problem.why}" for problem in reading.problems)
            raise SourceError(
                f"the hostengine at {self._address} lists no GPU{why}",
                "check `nvidia-smi` and `dcgmi discovery -l`; restart the hostengine if the driver came up after it",
            )
        details = {
            "bindings": self._bindings.origin,
            "library": node.session.library_version,
            "hostengine": node.session.hostengine_version,
            "address": str(self._address),
        }
        return Batch(
            self.name,
            self._line.now,
            reading.devices,
            reading.readings,
            reading.problems,
            details=details,
            fabric=reading.fabric,
        )

    def close(self) -> None:
        """Ends the watches with the connection, and DCGM in this process."""
        self._disconnect()
        if self._loaded:
            self._loaded = False
            shut_down(self._bindings)

    def _connect(self) -> Node:
        self._loaded = True
        session = open_session(self._bindings, self._address, self._timeout)
        log.info(
            "connected to the hostengine at %s: DCGM %s, library %s, bindings %s",
            self._address,
            session.hostengine_version or "of unknown version",
            session.library_version or "of unknown version",
            self._bindings.origin,
        )
        self._node = Node(session, self._interval, self._known, self._sxids)
        return self._node

    def _disconnect(self) -> None:
        """The hostengine ends the watches of a connection with it."""
        node, self._node = self._node, None
        if node is not None:
            with contextlib.suppress(CallFailed):
                node.session.close()
