"""One scenario being played by the player of NVML."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from ..player import playing, report
from ..player.playing import prepare
from .scenario import Scenario
from .scenario_file import scenario_lines


@dataclass(frozen=True)
class Report(report.Report):
    """What this player counts beyond what every player does, in the order of its enum gauge."""

    open_samples: int
    open_mig_samples: int
    open_event_sets: int
    init_count: int


@dataclass(frozen=True)
class Playing(playing.Playing):
    player: ClassVar[str] = "NVML"

    def report(self) -> Report:
        return report.read_report(self.report_path, Report)


def play(scenario: Scenario, library: Path, folder: Path, *, real_time: bool = False, start: float = 0.0) -> Playing:
    return Playing(library, *prepare(scenario_lines(scenario), folder, real_time=real_time, start=start))
