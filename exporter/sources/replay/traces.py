"""The result of reading a trace."""

from __future__ import annotations

from dataclasses import dataclass

from exporter.model import Device, SourceError
from exporter.sources.timeline import Timeline


class TraceError(SourceError):
    """A file that cannot be played. The text names the file, what is wrong with it and what helps."""


@dataclass(frozen=True, slots=True)
class GpuTrace:
    """One GPU of a trace."""

    device: Device
    timeline: Timeline
    notes: tuple[str, ...] = ()  # what to know when reading its numbers
