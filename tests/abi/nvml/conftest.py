"""Fixtures: the built player, and running Python against it."""

import os
from pathlib import Path

import pytest

from .build import player_library
from .meeting import Run, run_python
from .playing import play
from .scenario import Scenario


@pytest.fixture(scope="session")
def player() -> Path:
    return player_library()


@pytest.fixture
def run(player: Path, tmp_path: Path) -> Run:
    def run_scenario(scenario: Scenario, script: str) -> object:
        return run_python(play(scenario, player, tmp_path / str(len(os.listdir(tmp_path)))), script)

    return run_scenario
