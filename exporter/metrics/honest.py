"""The honest numbers: where each second of a GPU went."""

from __future__ import annotations

from collections.abc import Iterator

from exporter.core.snapshot import Snapshot
from exporter.fields import PIPES
from exporter.metrics.family import DEVICE, Family, Group, Profile, Sample, Type, device_labels, join

_PARTS = (
    "working: the busiest unit did work; stalled: warps resident but waiting; hollow: the driver says busy, the SMs "
    "were empty; idle: nothing ran; unexplained: the available inputs cannot tell"
)
TIME_SECONDS = Family(
    "time_seconds",
    Type.COUNTER,
    "seconds",
    f'GPU time by part. {_PARTS}. The parts sum to observed_seconds_total{{of="parts"}}.',
    labels=(*DEVICE, "part"),
    profile=Profile.MINIMAL,
)
TIME_RATIO = Family(
    "time_ratio",
    Type.GAUGE,
    "ratio",
    f"Share of the last window by part; they sum to 1. {_PARTS}.",
    labels=(*DEVICE, "part"),
)
UTILIZATION = Family(
    "utilization_ratio",
    Type.GAUGE,
    "ratio",
    "The main number: share of the last window in which the busiest unit did work. Absent where no pipe is measured.",
    profile=Profile.MINIMAL,
)
DIVERGENCE = Family(
    "divergence_ratio",
    Type.GAUGE,
    "ratio",
    "The driver's claim in excess of SM active: busy_ratio - sm_active_ratio over the same window, at least 0.",
    profile=Profile.MINIMAL,
)
EXCEEDED = Family(
    "sm_active_exceeds_busy",
    Type.COUNTER,
    "",
    "Windows in which SM active was above the driver's claim by more than rounding (divergence_ratio was set to 0).",
    profile=Profile.FULL,
)
LIMITER = Family(
    "limiter",
    Type.GAUGE,
    "",
    "1 for the unit that was busiest in the last window, 0 for others; none: all below 1 %.",
    labels=(*DEVICE, "limiter"),
    profile=Profile.FULL,
)
LIMITER_SECONDS = Family(
    "limiter_seconds",
    Type.COUNTER,
    "seconds",
    "Seconds for which a unit was the busiest; none: all below 1 %.",
    labels=(*DEVICE, "limiter"),
)


def _collect(snapshot: Snapshot) -> Iterator[Sample]:
    for view in snapshot.entities:
        device, numbers, totals = device_labels(view), view.honest, view.totals
        for part in dict.fromkeys((*view.parts, *totals.parts)):
            if totals.parts:
                yield Sample(TIME_SECONDS, join(device, f'part="{part}"'), totals.parts.get(part, 0.0))
        limiters = [pipe for pipe in PIPES if pipe in view.fields or pipe in totals.limiters]
        if totals.limiters:
            for limiter in (*limiters, "none"):
                yield Sample(LIMITER_SECONDS, join(device, f'limiter="{limiter}"'), totals.limiters.get(limiter, 0.0))
        if totals.observed.get("parts"):
            yield Sample(EXCEEDED, device, totals.exceeded)
        if numbers is None:
            continue
        for part, share in numbers.parts.items():
            yield Sample(TIME_RATIO, join(device, f'part="{part}"'), share)
        if numbers.utilization is not None:
            yield Sample(UTILIZATION, device, numbers.utilization)
        if numbers.divergence is not None:
            yield Sample(DIVERGENCE, device, numbers.divergence)
        if numbers.limiter is not None:
            for limiter in (*limiters, "none"):
                yield Sample(LIMITER, join(device, f'limiter="{limiter}"'), float(limiter == numbers.limiter))


GROUP = Group(
    "The honest numbers",
    (TIME_SECONDS, TIME_RATIO, UTILIZATION, DIVERGENCE, EXCEEDED, LIMITER, LIMITER_SECONDS),
    _collect,
)
