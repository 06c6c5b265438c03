"""What the player of NVML counts beyond what every player does."""

from dataclasses import dataclass

from ..player import report


@dataclass(frozen=True)
class Report(report.Report):
    open_samples: int
    open_mig_samples: int
    open_event_sets: int
    init_count: int
