"""One scenario being played: its files in a folder, and the environment in which a process meets it."""

import os
from dataclasses import dataclass
from pathlib import Path

from .clock import VirtualClock
from .report import Report, read_report
from .scenario import Scenario
from .scenario_file import write_scenario


@dataclass(frozen=True)
class Playing:
    library: Path
    """The folder of build_player."""
    scenario_path: Path
    report_path: Path
    clock: VirtualClock | None
    """None: real time since the first initialization."""

    def environment(self) -> dict[str, str]:
        """The process's own environment and what the player needs."""
        path = os.environ.get("LD_LIBRARY_PATH")
        return os.environ | {
            "LD_LIBRARY_PATH": f"{self.library}:{path}" if path else str(self.library),
            "HONEST_TEST_NVML_SCENARIO": str(self.scenario_path),
            "HONEST_TEST_NVML_CLOCK": str(self.clock.path) if self.clock is not None else "",
            "HONEST_TEST_NVML_REPORT": str(self.report_path),
        }

    def report(self) -> Report:
        return read_report(self.report_path)


def play(scenario: Scenario, library: Path, folder: Path, *, real_time: bool = False, start: float = 0.0) -> Playing:
    folder.mkdir(parents=True, exist_ok=True)
    clock = None if real_time else VirtualClock(folder / "clock", start)
    return Playing(library, write_scenario(scenario, folder / "scenario"), folder / "report", clock)
