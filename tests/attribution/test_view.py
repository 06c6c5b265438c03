"""Allocated, not allocated, and not known."""

from __future__ import annotations

from exporter.attribution.background import SourceHealth
from exporter.attribution.holdings import Holding, Sharing, Workload
from exporter.attribution.view import AttributionView
from exporter.model import Entity

A, B = Entity("GPU-1"), Entity("GPU-2")
HELD = (Holding(A, Workload(job_id="7"), Sharing.EXCLUSIVE),)


def test_nobody_holds_it_only_where_every_source_could_tell() -> None:
    up, down = SourceHealth("slurm", True), SourceHealth("kubernetes", False)
    whole = AttributionView((up,), HELD)
    assert (whole.allocated(A), whole.allocated(B)) == (True, False)
    half = AttributionView((up, down), HELD)
    assert (half.allocated(A), half.allocated(B)) == (True, None)  # a pod may hold it
    partly = SourceHealth("kubernetes", True, all_told=False)  # a claim holds one, and it is not known which
    assert (AttributionView((up, partly), HELD).allocated(A), AttributionView((partly,), HELD).allocated(B)) == (
        True,
        None,
    )
    assert AttributionView((down,), ()).allocated(A) is None
    assert AttributionView((), ()).allocated(A) is None
