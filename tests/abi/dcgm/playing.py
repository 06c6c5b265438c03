"""One scenario being played: its files in a folder, and the environment in which processes meet it."""

import os
from dataclasses import dataclass
from pathlib import Path

from ..nvml.clock import VirtualClock
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
    costed: bool = False
    """Each request to the hostengine is a round trip to a second process, a child of the one that connects."""

    def variables(self) -> dict[str, str]:
        """What the player needs; the library's folder is for _dcgmInit, or as a part of LD_LIBRARY_PATH."""
        return {
            "HONEST_TEST_DCGM_SCENARIO": str(self.scenario_path),
            "HONEST_TEST_DCGM_CLOCK": str(self.clock.path) if self.clock is not None else "",
            "HONEST_TEST_DCGM_REPORT": str(self.report_path),
            "HONEST_TEST_DCGM_REQUEST_COST": "socket" if self.costed else "",
        }

    def environment(self) -> dict[str, str]:
        """The process's own environment, what the player needs, and the library in the loader's path."""
        path = os.environ.get("LD_LIBRARY_PATH")
        library = f"{self.library}:{path}" if path else str(self.library)
        return os.environ | self.variables() | {"LD_LIBRARY_PATH": library}

    def report(self) -> Report:
        return read_report(self.report_path)


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
    folder.mkdir(parents=True, exist_ok=True)
    if clock is None and not real_time:
        clock = VirtualClock(folder / "clock", start)
    return Playing(library, write_scenario(scenario, folder / "scenario"), folder / "report", clock, costed)
