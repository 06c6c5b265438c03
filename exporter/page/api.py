"""The node as a JSON document: what the page and ``top`` show. docs/api.md describes it field by field.

Absent is null, never 0, and ``absent`` beside it says why. Additions keep VERSION; a changed meaning raises it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from exporter.core.snapshot import EntityView, Snapshot
from exporter.fields import CLAIM, LINKS, PROFILING
from exporter.model import Problem
from exporter.page.explanations import warnings, why
from exporter.page.history import Freshness, Points
from exporter.version import VERSION as EXPORTER_VERSION

VERSION = 1
PATH = "/api/v1/snapshot"
Json: TypeAlias = "str | float | bool | Sequence[Json] | Mapping[str, Json] | None"

MEANS = (*CLAIM, *PROFILING, *LINKS)
GAUGES = ("power", "power_limit", "temperature", "sm_clock", "memory_used", "memory_total", "processes")


def document(snapshot: Snapshot, freshness: Freshness, history: Points | None = None) -> dict[str, Json]:
    """The document of one Snapshot; with ``history`` when the client asked for it."""
    made: dict[str, Json] = {
        "version": VERSION,
        "exporter_version": EXPORTER_VERSION,
        "number": snapshot.number,
        "timestamp": snapshot.timestamp,
        "age_seconds": round(freshness.age, 3),
        "stale": freshness.stale,
        "warnings": warnings(snapshot, freshness),
        "expected_gpus": snapshot.expected_gpus,
        "present_gpus": snapshot.present_gpus,
        "sources": [
            {
                "name": source.name,
                "up": source.up,
                "reason": source.reason or None,
                "reads": source.reads,
                "failures": source.failures,
                "read_seconds": _number(source.seconds),
            }
            for source in snapshot.sources
        ],
        "attribution": _attribution(snapshot),
        "rejected": _rejected(snapshot.rejected),
        "problems": [_problem(problem) for problem in snapshot.problems],
        "gpus": [_entity(view, snapshot) for view in snapshot.entities],
    }
    if history is not None:
        made["history"] = _history(history)
    return made


def _entity(view: EntityView, snapshot: Snapshot) -> dict[str, Json]:
    device = view.device
    values: dict[str, Json] = _values(view)
    derived: dict[str, Json] = {**_honest(view), **_state(view), "holders": _holders(view, snapshot)}
    return {
        "id": str(device.entity),
        "uuid": device.entity.uuid,
        "gpu_instance": device.entity.gpu_instance,
        "index": device.index,
        "model": device.model or None,
        "pci_bus_id": device.pci_bus_id or None,
        "driver_version": device.driver_version or None,
        "mig_profile": device.mig_profile or None,
        "mig_enabled": device.mig_enabled,
        "present": view.present,
        "claim": view.claim,
        "values": values,
        **derived,
        "absent": {name: why(name, view, snapshot) for name, value in {**values, **derived}.items() if value is None},
        "quality": {
            "source": view.source,
            "details": dict(view.details),
            "form": view.form.value,
            "profiling": view.profiling.value,
            "last_sample_timestamp": _number(view.last_sample),
            "rejected": _rejected(view.rejected),
        },
    }


def _values(view: EntityView) -> dict[str, Json]:
    means = {name: _number(view.means.get(name)) for name in MEANS}
    return {**means, **{name: _number(view.instants.get(name)) for name in GAUGES}}


def _honest(view: EntityView) -> dict[str, Json]:
    honest = view.honest
    if honest is None:
        return dict.fromkeys(("parts", "utilization", "divergence", "limiter"))
    return {
        "parts": {part: _number(share) for part, share in honest.parts.items()},
        "utilization": _number(honest.utilization),
        "divergence": _number(honest.divergence),
        "limiter": honest.limiter,
    }


def _state(view: EntityView) -> dict[str, Json]:
    if view.state is None:
        return dict.fromkeys(("state", "state_reason", "throttled"))
    return {
        "state": view.state.verdict.state.value,
        "state_reason": view.state.verdict.reason,
        "throttled": [reason for reason, active in sorted(view.state.throttled.items()) if active],
    }


def _holders(view: EntityView, snapshot: Snapshot) -> Json:
    attribution, entity = snapshot.attribution, view.device.entity
    if attribution is None or not view.present or view.device.mig_enabled or attribution.allocated(entity) is None:
        return None
    return [
        {
            **{key: text or None for key, text in holding.workload._asdict().items()},
            "sharing": holding.sharing.value,
            "labels": dict(holding.labels),
        }
        for holding in attribution.holdings
        if holding.entity == entity
    ]


def _rejected(counts: Mapping[tuple[str, str], int]) -> list[Json]:
    return [{"field": field, "reason": reason, "count": count} for (field, reason), count in sorted(counts.items())]


def _attribution(snapshot: Snapshot) -> Json:
    if snapshot.attribution is None:
        return None
    return [
        {"name": source.name, "up": source.up, "reason": source.reason or None}
        for source in snapshot.attribution.sources
    ]


def _problem(problem: Problem) -> dict[str, Json]:
    entity = None if problem.entity is None else str(problem.entity)
    return {"gpu": entity, "what": problem.what, "why": problem.why, "remedy": problem.remedy or None}


def _history(points: Points) -> dict[str, Json]:
    return {
        "timestamps": points.timestamps,  # unrounded: a client asks for what is later than the last one
        "gpus": {str(entity): {**columns} for entity, columns in points.columns.items()},
    }


def _number(value: float | None) -> float | None:
    """JSON has no NaN and no infinity; the range check lets none through, and neither does this."""
    return value if value is not None and math.isfinite(value) else None
