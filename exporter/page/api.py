"""The node as a JSON document: what the page and ``top`` show. docs/api.md describes it field by field.

Absent is null, never 0, and ``absent`` beside it says why. Additions keep VERSION; a changed meaning raises it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from exporter.core.snapshot import EntityView, Snapshot
from exporter.fields import CLAIM, LINKS, PIPES, PROFILING
from exporter.model import Problem
from exporter.page.history import Freshness, Points
from exporter.version import VERSION as EXPORTER_VERSION

VERSION = 1
PATH = "/api/v1/snapshot"
Json: TypeAlias = "str | float | bool | list[Json] | Mapping[str, Json] | None"

GAUGES = (
    "power",
    "power_limit",
    "temperature",
    "sm_clock",
    "memory_used",
    "memory_total",
    "processes",
)
MEANS = (*CLAIM, *PROFILING, *LINKS)


def document(snapshot: Snapshot, freshness: Freshness, history: Points | None = None) -> dict[str, Json]:
    """The document of one Snapshot; with ``history`` when the client asked for it."""
    made: dict[str, Json] = {
        "version": VERSION,
        "exporter_version": EXPORTER_VERSION,
        "number": snapshot.number,
        "timestamp": snapshot.timestamp,
        "age_seconds": round(freshness.age, 3),
        "stale": freshness.stale,
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
        "problems": [_problem(problem) for problem in snapshot.problems],
        "gpus": [_entity(view, snapshot) for view in snapshot.entities],
    }
    if history is not None:
        made["history"] = _history(history)
    return made


def _entity(view: EntityView, snapshot: Snapshot) -> dict[str, Json]:
    device, absent = view.device, _Absent(view)
    instance = device.entity.gpu_instance
    return {
        "id": str(device.entity),
        "uuid": device.entity.uuid,
        "gpu_instance": instance,
        "index": device.index,
        "model": device.model or None,
        "pci_bus_id": device.pci_bus_id or None,
        "driver_version": device.driver_version or None,
        "mig_profile": device.mig_profile or None,
        "mig_enabled": device.mig_enabled,
        "present": view.present,
        "claim": view.claim,
        "values": {
            **{name: absent.field(name, view.means) for name in MEANS},
            **{name: absent.field(name, view.instants) for name in GAUGES},
        },
        "parts": absent.parts(),
        **absent.derived(),
        **absent.state(),
        "holders": absent.holders(snapshot),
        "quality": {
            "source": view.source,
            "details": dict(view.details),
            "form": view.form.value,
            "profiling": view.profiling.value,
            "last_sample_timestamp": _number(view.last_sample),
            "rejected": [
                {"field": field, "reason": reason, "count": count}
                for (field, reason), count in sorted(view.rejected.items())
            ],
        },
        "absent": absent.reasons,  # last: the calls above fill it
    }


class _Absent:
    """Gives the values of one entity, and keeps why some are missing."""

    def __init__(self, view: EntityView) -> None:
        self._view = view
        self.reasons: dict[str, Json] = {}

    def field(self, name: str, values: Mapping[str, float]) -> float | None:
        value = _number(values.get(name)) if self._view.present else None
        return value if value is not None else self._because(name, self._why(name))

    def parts(self) -> Json:
        view = self._view
        if view.present and view.honest is not None:
            return {part: _number(share) for part, share in view.honest.parts.items()}
        # what keeps the parts from being computed is one of their inputs
        return self._because("parts", self._why_first("sm", *PIPES, "busy") if view.parts else self._why("sm"))

    def derived(self) -> dict[str, Json]:
        view = self._view
        honest = view.honest if view.present else None
        return {
            "utilization": self._derived("utilization", honest and honest.utilization, (*PIPES, "sm", "busy")),
            "divergence": self._derived("divergence", honest and honest.divergence, ("busy", "sm")),
            "limiter": (honest and honest.limiter) or self._because("limiter", self._why_first(*PIPES, "sm", "busy")),
        }

    def state(self) -> dict[str, Json]:
        view = self._view
        if view.present and view.state is not None:
            verdict, throttled = view.state.verdict, view.state.throttled
            return {
                "state": verdict.state.value,
                "state_reason": verdict.reason,
                "throttled": [reason for reason, active in sorted(throttled.items()) if active],
            }
        why = self._whole() or "no_data"
        return {name: self._because(name, why) for name in ("state", "state_reason", "throttled")}

    def holders(self, snapshot: Snapshot) -> Json:
        attribution, entity = snapshot.attribution, self._view.device.entity
        if attribution is None:
            return self._because("holders", self._whole() or "not_configured")
        if (why := self._whole()) or attribution.allocated(entity) is None:
            return self._because("holders", why or "no_data")
        return [
            {
                **{key: text or None for key, text in holding.workload._asdict().items()},
                "sharing": holding.sharing.value,
                "labels": dict(holding.labels),
            }
            for holding in attribution.holdings
            if holding.entity == entity
        ]

    def _derived(self, name: str, value: float | None, inputs: Iterable[str]) -> float | None:
        number = _number(value)
        return number if number is not None else self._because(name, self._why_first(*inputs))

    def _because(self, name: str, why: str) -> None:
        self.reasons[name] = why

    def _whole(self) -> str:
        """Why nothing is said of this entity as one; empty where something could be."""
        if not self._view.present:
            return "not_present"
        return "per_instance" if self._view.device.mig_enabled else ""

    def _why(self, field: str) -> str:
        view = self._view
        if not view.present:
            return "not_present"
        if field in view.absences:
            return view.absences[field].value
        return "no_data" if field in view.fields else "not_reported"

    def _why_first(self, *inputs: str) -> str:
        """The reason of the first input that is missing though it was to come, else of the first that is missing."""
        view = self._view
        if not view.present:
            return "not_present"
        missing = [name for name in inputs if name not in view.means]
        told = [name for name in missing if name in view.absences]
        expected = [name for name in missing if name in view.fields]
        return next((self._why(name) for name in (*told, *expected, *missing)), "no_data")


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
        "timestamps": [round(timestamp, 3) for timestamp in points.timestamps],
        "gpus": {str(entity): dict(columns) for entity, columns in points.columns.items()},
    }


def _number(value: float | None) -> float | None:
    """JSON has no NaN and no infinity; the door lets none through, and neither does this."""
    return value if value is not None and math.isfinite(value) else None
