"""Why a value of an entity is absent: one word per value, those of honest_gpu_field_supported and a few more.

``not_present``: the GPU is missing. ``per_instance``: the board is split into instances, which have the value.
``not_reported``: the source does not offer it. ``no_data``: expected, but not received. ``not_configured``: disabled.
"""

from __future__ import annotations

from collections.abc import Mapping

from exporter.core.snapshot import EntityView, Snapshot
from exporter.fields import PIPES, PROFILING
from exporter.model import Absence

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
