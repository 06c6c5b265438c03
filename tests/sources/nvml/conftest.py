"""Fixtures: a scenario driven through the source."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.abi.nvml.build import player_library
from tests.abi.nvml.scenario import Scenario
from tests.sources.nvml.driving import Driven, drive

Drive = Callable[[Scenario, str], Driven]


@pytest.fixture
def driven(tmp_path: Path) -> Drive:
    library = player_library()

    def run(scenario: Scenario, script: str) -> Driven:
        return drive(scenario, library, tmp_path / str(len(os.listdir(tmp_path))), script)

    return run
