"""What happens below the scrape interval: the distribution of samples, and stalls."""

from __future__ import annotations

from collections.abc import Iterator

from exporter.core.ledger import BUCKETS
from exporter.core.snapshot import Snapshot
from exporter.metrics.family import Family, Group, Profile, Sample, Type, device_labels, join

DISTRIBUTION = Family(
    "sm_active_distribution", Type.HISTOGRAM, "", "Samples of SM active (0..1), one per sampling window."
)
STALLS = Family(
    "stalls",
    Type.COUNTER,
    "",
    "Gaps of two samples or more in which a GPU held by a process did nothing. Absent where processes are unknown.",
)
STALL_SECONDS = Family("stall_seconds", Type.COUNTER, "seconds", "Seconds in such gaps.", profile=Profile.DEFAULT)


def _collect(snapshot: Snapshot) -> Iterator[Sample]:
    for view in snapshot.entities:
        device, totals = device_labels(view), view.totals
        if "sm" in totals.seconds:
            count = 0
            for bound, samples in zip((*map(str, BUCKETS), "+Inf"), totals.buckets, strict=True):
                count += samples
                yield Sample(DISTRIBUTION, join(device, f'le="{bound}"'), count, "_bucket")
            yield Sample(DISTRIBUTION, device, totals.bucket_sum, "_sum")
            yield Sample(DISTRIBUTION, device, count, "_count")
        if totals.stalls is not None:
            yield Sample(STALLS, device, totals.stalls)
            yield Sample(STALL_SECONDS, device, totals.stall_seconds)


GROUP = Group("Below the scrape interval", (DISTRIBUTION, STALLS, STALL_SECONDS), _collect)
