"""Runs a source's reads: in a thread of its own for the daemon, inline for virtual time."""

from __future__ import annotations

import logging
import time
from typing import NamedTuple, Protocol

from exporter.background.lane import Lane
from exporter.model import Batch, Source, SourceError

log = logging.getLogger(__name__)


class Outcome(NamedTuple):
    """The result of one read: a batch or an error, and the seconds it took."""

    batch: Batch | None
    error: SourceError | None
    seconds: float


class Worker(Protocol):
    """At most one read at a time is under way."""

    source: Source

    def submit(self, now: float) -> bool:
        """Start a read; False when the last one has not come back."""

    def outcome(self, timeout: float) -> Outcome | None:
        """The result of the read; None if it is not back within ``timeout`` seconds."""

    def stop(self) -> None:
        """Close the source as soon as its read, if any, is back. Does not wait."""

    def join(self, timeout: float) -> None:
        """Wait for that; a read that hangs is left behind."""


def read(source: Source, now: float) -> Outcome:
    """One read. An unexpected error costs this read, not the daemon, and is logged with its trace."""
    started = time.perf_counter()
    try:
        batch, error = source.read(now), None
    except SourceError as raised:
        batch, error = None, raised
    except Exception as raised:
        log.exception("source %s: unexpected error", source.name)
        batch, error = None, SourceError(f"{type(raised).__name__}: {raised}", "report this with the log's trace")
    return Outcome(batch, error, time.perf_counter() - started)


class InlineWorker:
    """Reads at once, in the caller's thread."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self._outcome: Outcome | None = None

    def submit(self, now: float) -> bool:
        self._outcome = read(self.source, now)
        return True

    def outcome(self, timeout: float) -> Outcome | None:
        outcome, self._outcome = self._outcome, None
        return outcome

    def stop(self) -> None:
        self.source.close()

    def join(self, timeout: float) -> None:
        """Nothing runs in the background."""


class ThreadWorker:
    """One lane per source: a read that hangs blocks only its own thread, and a late result is still taken."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self._lane: Lane[Outcome] = Lane(f"source-{source.name}")

    def submit(self, now: float) -> bool:
        return self._lane.start(lambda: read(self.source, now))

    def outcome(self, timeout: float) -> Outcome | None:
        return self._lane.take() if self._lane.done(timeout) else None

    def stop(self) -> None:
        self._lane.stop(self.source.close)

    def join(self, timeout: float) -> None:
        self._lane.join(timeout)
