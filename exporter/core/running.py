"""Repeats the sampler's window: in (possibly scaled) real time, or as fast as it goes on a virtual clock."""

from __future__ import annotations

import math
import threading
import time

from exporter.clock import VirtualClock
from exporter.core.sampler import Sampler

PATIENCE = 0.5  # share of an interval for which a window waits for slow sources; those are taken up at the next one


def run_timed(sampler: Sampler, interval: float, stop: threading.Event) -> None:
    """One window every ``interval`` real seconds until told to stop or all sources have ended.

    The schedule does not drift: windows start at multiples of the interval, and missed ones are left out, not made up.
    """
    origin = time.monotonic()
    while not stop.is_set() and not sampler.ended:
        sampler.tick(patience=interval * PATIENCE)
        elapsed = time.monotonic() - origin
        stop.wait((math.floor(elapsed / interval) + 1) * interval - elapsed)


def run_fast(sampler: Sampler, clock: VirtualClock, interval: float, stop: threading.Event) -> None:
    """Windows back to back, each ``interval`` virtual seconds long, until all sources have ended."""
    while not stop.is_set():
        sampler.tick()
        if sampler.ended:
            return
        clock.advance(interval)
