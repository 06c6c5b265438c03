"""What explains the numbers of the page: why a value is null, and warnings for the reader.

Why a value is null is one word: a label value of honest_gpu_field_supported, or one of these.

``not_present``: the GPU is missing. ``per_instance``: the board is split into instances, which have the value.
``not_reported``: the source does not offer it. ``no_data``: expected, but not received. ``not_configured``: disabled.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from exporter.core.snapshot import EntityView, Snapshot
from exporter.fields import PIPES, PROFILING
from exporter.model import Absence
from exporter.page.history import Freshness

# what a derived number is computed from, in the order in which its absence is explained
INPUTS: Mapping[str, tuple[str, ...]] = {
    "parts": ("sm", *PIPES, "busy", "graphics_engine"),
    "utilization": (*PIPES, "sm", "busy", "graphics_engine"),
    "limiter": (*PIPES, "sm", "busy", "graphics_engine"),
    "divergence": ("busy", "sm"),
}
STAGES = frozenset({"state", "state_reason", "throttled", "holders"})  # attached after the core
OF_INSTANCES = frozenset({*STAGES, *INPUTS, *PROFILING})  # what a board that is cut into instances has none of itself


def why(name: str, view: EntityView, snapshot: Snapshot) -> str:
    """Why the document's value ``name`` of ``view`` is null."""
    if not view.present:
        return "not_present"
    if view.device.mig_enabled and name in OF_INSTANCES and name not in view.absences:
        return "per_instance"
    if name in STAGES:
        return "not_configured" if name == "holders" and snapshot.attribution is None else "no_data"
    if name in INPUTS:
        return _first(INPUTS[name], view)
    return _field(name, view)


def _field(name: str, view: EntityView) -> str:
    if name in view.absences:
        return view.absences[name].value
    return "no_data" if name in view.fields else "not_reported"


def _first(inputs: tuple[str, ...], view: EntityView) -> str:
    """Of the inputs that are missing, the one that matters: what may come back before what this GPU never had."""
    missing = [_field(name, view) for name in inputs if name not in view.means]
    return min(missing, key=_rank, default="no_data")


def _rank(reason: str) -> int:
    if reason == "not_reported":
        return 3
    if reason == "no_data":
        return 1
    return 2 if Absence(reason).definitive else 0


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
