"""Fixtures: the built player, and running Python against it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from .bindings import need_bindings
from .build import player_library
from .meeting import Run, run_python
from .playing import Playing, play
from .scenario import Scenario

Start = Callable[[Scenario], Playing]


@pytest.fixture(scope="session")
def player() -> Path:
    need_bindings()
    return player_library()


@pytest.fixture
def start(player: Path, tmp_path: Path) -> Start:
    def start_scenario(scenario: Scenario) -> Playing:
        return play(scenario, player, tmp_path / str(len(list(tmp_path.iterdir()))))

    return start_scenario


@pytest.fixture
def run(start: Start) -> Run:
    def run_scenario(scenario: Scenario, script: str) -> object:
        return run_python(start(scenario), script)

    return run_scenario
