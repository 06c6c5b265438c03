"""The host in a Snapshot: the last pass, and rates since the one before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from exporter.host.reading import HostReading


@dataclass(frozen=True, slots=True)
class HostView:
    """The node's part. Ratios are over the time between the last two passes; a key that is missing is not known."""

    reading: HostReading
    pressure: Mapping[str, float] = field(default_factory=dict)  # resource -> share of time that some task waited
    main_thread: Mapping[int, float] = field(default_factory=dict)  # pid -> share of a core
    rdma: float | None = None  # the busiest port and direction, share of its link
