"""What the player of DCGM counts beyond what every player does."""

from dataclasses import dataclass

from ..player import report


@dataclass(frozen=True)
class Report(report.Report):
    open_handles: int
    open_groups: int
    open_field_groups: int
    open_watches: int
    """Fields of entities, times their watchers."""
    kept_samples: int
