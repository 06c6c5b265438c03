"""Quality: what is missing, why, and how far the rest can be trusted."""

from __future__ import annotations

from collections.abc import Iterator

from exporter.core.snapshot import EntityView, Snapshot
from exporter.fields import CLAIM, PROFILING
from exporter.metrics.family import DEVICE, Family, Group, Profile, Sample, Type, device_labels, join, labels
from exporter.trust import ProfilingState

UP = Family(
    "up",
    Type.GAUGE,
    "",
    "1 when the last read of a source succeeded in time, else 0.",
    labels=("source",),
    profile=Profile.MINIMAL,
)
READS = Family("source_reads", Type.COUNTER, "", "Reads of a source that returned.", labels=("source",))
FAILURES = Family("source_failures", Type.COUNTER, "", "Reads of a source that failed.", labels=("source",))
READ_SECONDS = Family(
    "source_read_seconds", Type.GAUGE, "seconds", "Duration of the last read of a source.", labels=("source",)
)
SOURCE_INFO = Family(
    "source",
    Type.INFO,
    "",
    "Where a device's numbers come from. claim: the field used as the driver's claim; form: the available inputs.",
    labels=(*DEVICE, "source", "claim", "form", "simulated", "estimated"),
)
FIELD_SUPPORTED = Family(
    "field_supported",
    Type.GAUGE,
    "",
    "0 for a field of the claim or the measurement that has no value, with the reason; 1 for one that has.",
    labels=(*DEVICE, "field", "reason"),
    profile=Profile.FULL,
)
LAST_SAMPLE = Family(
    "last_sample_timestamp_seconds",
    Type.GAUGE,
    "seconds",
    "When the last valid sample was taken.",
    profile=Profile.MINIMAL,
)
REJECTED = Family(
    "rejected_samples",
    Type.COUNTER,
    "",
    'Values rejected instead of exported, by field and reason; field="line": a line that cannot be parsed.',
    labels=(*DEVICE, "field", "reason"),
)
PROFILING_STATE = Family(
    "profiling_state",
    Type.GAUGE,
    "",
    "1 for the current state of the profiling data; ok is always exported, as 0 when the state is another one.",
    labels=(*DEVICE, "state"),
)
SUSPECT = Family(
    "suspect_zero",
    Type.GAUGE,
    "",
    "1 for a field that is exactly 0 where that is implausible (PCIe for 5 minutes of active SMs); otherwise absent.",
    labels=(*DEVICE, "field"),
)
EXPECTED = Family(
    "expected_gpus", Type.GAUGE, "", "GPU boards seen since the exporter started.", labels=(), profile=Profile.MINIMAL
)
PRESENT = Family(
    "present_gpus", Type.GAUGE, "", "GPU boards that the sources list now.", labels=(), profile=Profile.MINIMAL
)
SNAPSHOT = Family(
    "snapshot_timestamp_seconds", Type.GAUGE, "seconds", "When the numbers served here were computed.", labels=()
)


def _reason(view: EntityView, field: str) -> str | None:
    """Why ``field`` has no value; '' when it has one; None when nothing is known of it."""
    if field in view.absences:
        return view.absences[field].value
    if field in view.means:
        return ""
    return "no_data" if field in view.fields else "not_reported"


def _collect(snapshot: Snapshot) -> Iterator[Sample]:
    for source in snapshot.sources:
        name = labels(source=source.name)
        yield Sample(UP, name, float(source.up))
        yield Sample(READS, name, source.reads)
        yield Sample(FAILURES, name, source.failures)
        yield Sample(READ_SECONDS, name, source.seconds)
    for view in snapshot.entities:
        device = device_labels(view)
        marks = {name: view.details.get(name, "") for name in ("simulated", "estimated")}
        details = labels(source=view.source, claim=view.claim or "", form=view.form.value, **marks)
        yield Sample(SOURCE_INFO, join(device, details), 1)
        for field in (*CLAIM, *PROFILING):
            reason = _reason(view, field)
            yield Sample(FIELD_SUPPORTED, join(device, labels(field=field, reason=reason or "")), float(not reason))
        if view.last_sample is not None:
            yield Sample(LAST_SAMPLE, device, view.last_sample)
        for (field, why), count in view.rejected.items():
            yield Sample(REJECTED, join(device, labels(field=field, reason=why)), count)
        for state in ProfilingState:
            if state is view.profiling or state is ProfilingState.OK:
                yield Sample(PROFILING_STATE, join(device, f'state="{state.value}"'), float(state is view.profiling))
        for field in sorted(view.suspects):
            yield Sample(SUSPECT, join(device, labels(field=field)), 1)
    for (field, why), count in snapshot.rejected.items():
        yield Sample(REJECTED, labels(field=field, reason=why), count)
    yield Sample(EXPECTED, "", snapshot.expected_gpus)
    yield Sample(PRESENT, "", snapshot.present_gpus)
    yield Sample(SNAPSHOT, "", snapshot.timestamp)


GROUP = Group(
    "Quality",
    (
        UP,
        READS,
        FAILURES,
        READ_SECONDS,
        SOURCE_INFO,
        FIELD_SUPPORTED,
        LAST_SAMPLE,
        REJECTED,
        PROFILING_STATE,
        SUSPECT,
        EXPECTED,
        PRESENT,
        SNAPSHOT,
    ),
    _collect,
)
