"""One scenario being played by the player of DCGM."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from ..player import playing, report
from ..player.clock import VirtualClock
from ..player.playing import prepare
from .scenario import Scenario
from .scenario_file import scenario_lines


@dataclass(frozen=True)
class Report(report.Report):
    """What this player counts beyond what every player does, in the order of its enum gauge."""

    open_handles: int
    open_groups: int
    open_field_groups: int
    open_watches: int
    """Fields of entities, times their watchers."""
    kept_samples: int


@dataclass(frozen=True)
class Playing(playing.Playing):
    player: ClassVar[str] = "DCGM"
    costed: bool = False
    """Each request to the hostengine is a round trip to a second process, a child of the one that connects."""

    def variables(self) -> dict[str, str]:
        return super().variables() | {"HONEST_TEST_DCGM_REQUEST_COST": "socket" if self.costed else ""}

    def report(self) -> Report:
        return report.read_report(self.report_path, Report)


def play(
    scenario: Scenario,
    library: Path,
    folder: Path,
    *,
    clock: VirtualClock | None = None,
    real_time: bool = False,
    start: float = 0.0,
    costed: bool = False,
) -> Playing:
    """Under a clock of its own, that of another player, or in real time."""
    prepared = prepare(scenario_lines(scenario), folder, clock=clock, real_time=real_time, start=start)
    return Playing(library, *prepared, costed)
