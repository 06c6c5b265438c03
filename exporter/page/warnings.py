"""What readers must know before the numbers, in plain sentences. Empty when all is well."""

from __future__ import annotations

from collections.abc import Iterator

from exporter.core.snapshot import Snapshot
from exporter.page.history import Freshness

MADE_UP = {
    "simulated": "SIMULATED: the numbers of this node are made up, on request.",
    "estimated": "ESTIMATED: the numbers come from a trace, not from counters.",
}


def warnings(snapshot: Snapshot, freshness: Freshness) -> list[str]:
    """The most serious first. Texts stay the same while the situation does: a screen reader reads each of them once."""
    return [*_warnings(snapshot, freshness)]


def _warnings(snapshot: Snapshot, freshness: Freshness) -> Iterator[str]:
    for mark, text in MADE_UP.items():
        if any(view.details.get(mark) == "true" for view in snapshot.entities):
            yield text
    if freshness.stale:
        yield "No new numbers: these are the last ones. The sampler has stopped, or its input has ended."
    for source in snapshot.sources:
        if not source.up:
            yield f"Source {source.name} is down: {source.reason}."
    gone = snapshot.expected_gpus - snapshot.present_gpus
    if gone > 0:
        yield f"{gone} of {snapshot.expected_gpus} GPUs are missing."
    for attributor in snapshot.attribution.sources if snapshot.attribution is not None else ():
        if not attributor.up:
            yield f"Attribution is down ({attributor.name}): {attributor.reason}."
