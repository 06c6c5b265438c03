"""The shape of the document, written by hand from docs/api.md: every key, and the types it may have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Shape = Any  # a type, a tuple of shapes (any of them), [shape] a list of it, {key: shape} exactly these keys, or Each
NULL = type(None)
NUMBER = (int, float)
TEXT_OR_NULL = (str, NULL)


class Each:
    """An object of any keys with one shape of value."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape


CLAIM = ("busy", "memory_busy")
MEASURED = ("graphics_engine", "sm", "sm_occupancy", "tensor", "fp64", "fp32", "fp16", "integer", "dram")
LINKS = ("pcie_transmit", "pcie_receive", "nvlink_transmit", "nvlink_receive")
GAUGES = ("power", "power_limit", "temperature", "sm_clock", "memory_used", "memory_total", "processes")
VALUES = (*CLAIM, *MEASURED, *LINKS, *GAUGES)
EXPLAINED = ("parts", "utilization", "divergence", "limiter", "state", "state_reason", "throttled", "holders")
COLUMNS = ("seconds", "claimed", "sm", "working", "stalled", "hollow", "unexplained", "idle")

HOLDER = {
    **dict.fromkeys(("namespace", "pod", "container", "job_id", "user", "account"), TEXT_OR_NULL),
    "sharing": str,
    "labels": Each(str),
}
REJECTED = [{"field": str, "reason": str, "count": int}]
GPU = {
    "id": str,
    "uuid": str,
    "gpu_instance": (int, NULL),
    "index": str,
    **dict.fromkeys(("model", "pci_bus_id", "driver_version", "mig_profile"), TEXT_OR_NULL),
    "mig_enabled": bool,
    "present": bool,
    "claim": TEXT_OR_NULL,
    "values": dict.fromkeys(VALUES, (*NUMBER, NULL)),
    "parts": (Each(NUMBER), NULL),
    "utilization": (*NUMBER, NULL),
    "divergence": (*NUMBER, NULL),
    "limiter": TEXT_OR_NULL,
    "state": TEXT_OR_NULL,
    "state_reason": TEXT_OR_NULL,
    "throttled": ([str], NULL),
    "holders": ([HOLDER], NULL),
    "absent": Each(str),
    "quality": {
        "source": str,
        "details": Each(str),
        "form": str,
        "profiling": str,
        "last_sample_timestamp": (*NUMBER, NULL),
        "rejected": REJECTED,
    },
}
DOCUMENT = {
    "version": int,
    "exporter_version": str,
    "number": int,
    "timestamp": NUMBER,
    "age_seconds": NUMBER,
    "stale": bool,
    "warnings": [str],
    "expected_gpus": int,
    "present_gpus": int,
    "sources": [
        {
            "name": str,
            "up": bool,
            "reason": TEXT_OR_NULL,
            "reads": int,
            "failures": int,
            "read_seconds": (*NUMBER, NULL),
        }
    ],
    "attribution": ([{"name": str, "up": bool, "reason": TEXT_OR_NULL}], NULL),
    "rejected": REJECTED,
    "problems": [{"gpu": TEXT_OR_NULL, "what": str, "why": str, "remedy": TEXT_OR_NULL}],
    "gpus": [GPU],
}
HISTORY = {"timestamps": [NUMBER], "gpus": Each({column: [(*NUMBER, NULL)] for column in COLUMNS})}


def faults(made: object, shape: Shape, where: str = "") -> list[str]:
    """Where ``made`` is not of the shape; empty when it is."""
    if isinstance(shape, tuple):
        return [] if any(not faults(made, each, where) for each in shape) else [f"{where}: {made!r}"]
    if isinstance(shape, list):
        if not isinstance(made, list):
            return [f"{where}: no list: {made!r}"]
        return [fault for n, each in enumerate(made) for fault in faults(each, shape[0], f"{where}[{n}]")]
    if isinstance(shape, Each):
        shape = dict.fromkeys(made, shape.shape) if isinstance(made, Mapping) else {}
    if isinstance(shape, dict):
        if not isinstance(made, Mapping) or made.keys() != shape.keys():
            return [f"{where}: keys {sorted(made) if isinstance(made, Mapping) else made!r}, not {sorted(shape)}"]
        return [fault for key, each in made.items() for fault in faults(each, shape[key], f"{where}.{key}")]
    right = isinstance(made, shape) and (shape is bool or not isinstance(made, bool))
    return [] if right else [f"{where}: {made!r} is no {shape.__name__}"]


def check(made: Mapping[str, Any]) -> None:
    """The shape, and that exactly what is null has a reason."""
    shape = {**DOCUMENT, "history": HISTORY} if "history" in made else DOCUMENT
    assert not faults(made, shape)
    for gpu in made["gpus"]:
        explained = {**gpu["values"], **{name: gpu[name] for name in EXPLAINED}}
        assert {name for name, value in explained.items() if value is None} == gpu["absent"].keys(), gpu["id"]
        assert all(gpu["absent"].values())
