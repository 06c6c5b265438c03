"""The measurement: what the silicon did (DCGM profiling fields, NVML GPM, or a trace's estimate)."""

from __future__ import annotations

from collections.abc import Iterator

from exporter.core.snapshot import Snapshot
from exporter.fields import LINKS, PROFILING, TENSOR_PIPES
from exporter.metrics.family import DEVICE, Family, Group, Profile, Sample, Type, device_labels, join

_WHAT = {
    "graphics_engine": "the graphics or compute engine was active (nearly the same claim as busy_ratio)",
    "sm": "at least one warp was resident on an SM, averaged over SMs",
    "sm_occupancy": "warp slots were resident, relative to the maximum, averaged over all SMs and cycles",
    "tensor": "the tensor pipe was active",
    "fp64": "the FP64 pipe was active",
    "fp32": "the FP32 pipe was active",
    "fp16": "the FP16 pipe was active (without tensor instructions)",
    "integer": "the integer pipe was active",
    "dram": "the device memory interface moved data",
}
_MINOR = frozenset({"fp64", "fp32", "fp16", "integer"})
_MINIMAL = frozenset({"sm", "tensor", "dram"})


def _stem(field: str) -> str:
    return field if field == "sm_occupancy" else f"{field}_active"


RATIOS = {
    field: Family(
        f"{_stem(field)}_ratio",
        Type.GAUGE,
        "ratio",
        f"Share of the last window for which {_WHAT[field]}.",
        profile=Profile.FULL if field in _MINOR else Profile.DEFAULT,
    )
    for field in PROFILING
}
SECONDS = {
    field: Family(
        f"{_stem(field)}_seconds",
        Type.COUNTER,
        "seconds",
        f'Seconds for which {_WHAT[field]}; divide by observed_seconds_total{{of="{field}"}}.',
        profile=Profile.MINIMAL if field in _MINIMAL else Profile.FULL if field in _MINOR else Profile.DEFAULT,
    )
    for field in PROFILING
}
TENSOR_PIPE = Family(
    "tensor_pipe_active_ratio",
    Type.GAUGE,
    "ratio",
    "tensor_active_ratio by kind of tensor instruction.",
    labels=(*DEVICE, "pipe"),
    profile=Profile.FULL,
)
_FLOW = {
    f"{link}_{direction}": f"{verb} by the GPU over {name}"
    for link, name in (("pcie", "PCIe"), ("nvlink", "NVLink"))
    for direction, verb in (("transmit", "sent"), ("receive", "received"))
}
TOTALS = {
    field: Family(
        f"{field}_bytes",
        Type.COUNTER,
        "bytes",
        f"Bytes {_FLOW[field]}; headers may be included.",
    )
    for field in LINKS
}
RATES = {
    field: Family(
        f"{field}_bytes_per_second",
        Type.GAUGE,
        "",
        f"Bytes per second {_FLOW[field]} in the last window.",
        profile=Profile.FULL,
    )
    for field in LINKS
}
OBSERVED = Family(
    "observed_seconds",
    Type.COUNTER,
    "seconds",
    "Seconds for which a group of fields was valid: the denominators of the _seconds_total counters. "
    '"claim" for busy, "parts" for time_seconds_total and limiter_seconds_total, a field\'s name for '
    'its counter; "measurement": all reported profiling fields together.',
    labels=(*DEVICE, "of"),
    profile=Profile.MINIMAL,
)
_OF = {"busy": "claim", "parts": "parts", "measurement": "measurement", **{field: field for field in PROFILING}}


def _collect(snapshot: Snapshot) -> Iterator[Sample]:
    for view in snapshot.entities:
        device, means, totals = device_labels(view), view.means, view.totals
        for field in PROFILING:
            if field in means:
                yield Sample(RATIOS[field], device, means[field])
            if field in totals.seconds:
                yield Sample(SECONDS[field], device, totals.seconds[field])
        for pipe in TENSOR_PIPES:
            if pipe in means:
                yield Sample(TENSOR_PIPE, join(device, f'pipe="{pipe.removeprefix("tensor_")}"'), means[pipe])
        for field in LINKS:
            if field in totals.amounts:
                yield Sample(TOTALS[field], device, totals.amounts[field])
            if field in means:
                yield Sample(RATES[field], device, means[field])
        for key, of in _OF.items():
            if key in totals.observed:
                yield Sample(OBSERVED, join(device, f'of="{of}"'), totals.observed[key])


GROUP = Group(
    "The measurement",
    (*RATIOS.values(), *SECONDS.values(), TENSOR_PIPE, *TOTALS.values(), *RATES.values(), OBSERVED),
    _collect,
)
