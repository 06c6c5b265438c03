"""One scenario being played: its files in a folder, and the environment in which processes meet it."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from .clock import VirtualClock
from .scenario_file import write


@dataclass(frozen=True)
class Playing:
    player: ClassVar[str]
    """Its name, as the environment has it."""
    library: Path
    """The folder of player_library."""
    scenario_path: Path
    report_path: Path
    clock: VirtualClock | None
    """None: real time since the first initialization."""

    def variables(self) -> dict[str, str]:
        """What the player needs; beyond it, its library must be found."""
        prefix = f"HONEST_TEST_{self.player}_"
        return {
            f"{prefix}SCENARIO": str(self.scenario_path),
            f"{prefix}CLOCK": str(self.clock.path) if self.clock is not None else "",
            f"{prefix}REPORT": str(self.report_path),
        }

    def environment(self) -> dict[str, str]:
        """The process's own environment, what the player needs, and the library in the loader's path."""
        path = os.environ.get("LD_LIBRARY_PATH")
        library = f"{self.library}:{path}" if path else str(self.library)
        return os.environ | self.variables() | {"LD_LIBRARY_PATH": library}


def prepare(
    lines: Iterable[str], folder: Path, *, clock: VirtualClock | None = None, real_time: bool, start: float
) -> tuple[Path, Path, VirtualClock | None]:
    """The paths of the scenario and of the report, and the clock: its own, that of another player, or real time."""
    folder.mkdir(parents=True, exist_ok=True)
    if clock is None and not real_time:
        clock = VirtualClock(folder / "clock", start)
    return write(lines, folder / "scenario"), folder / "report", clock
