"""Fixtures: a source that meets the player."""

import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

import pytest

from exporter.sources.dcgm import timeline
from exporter.sources.dcgm.bindings import Bindings, find_bindings
from exporter.sources.dcgm.source import DcgmSource
from tests.abi.dcgm.bindings import bindings_folder, need_bindings
from tests.abi.dcgm.build import player_library
from tests.abi.dcgm.playing import Playing, play
from tests.abi.dcgm.scenario import Scenario

from .driving import Driver

PlayScenario = Callable[[Scenario], Playing]


class Drive(Protocol):
    def __call__(
        self, scenario: Scenario, *, address: str = ..., interval: float = ..., timeout: float = ...
    ) -> Driver: ...


@pytest.fixture(scope="session")
def player() -> Path:
    need_bindings()
    return player_library()


@pytest.fixture
def bindings(player: Path) -> Bindings:
    folder = bindings_folder()
    return find_bindings(Path(folder) if folder else None, folders=())


@pytest.fixture
def play_scenario(player: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PlayScenario:
    """From now on the library, when it starts, plays this scenario."""

    def start(scenario: Scenario) -> Playing:
        playing = play(scenario, player, tmp_path / str(len(list(tmp_path.iterdir()))))
        for name, value in playing.environment().items():
            monkeypatch.setenv(name, value)
        return playing

    return start


@pytest.fixture
def drive(play_scenario: PlayScenario, bindings: Bindings, monkeypatch: pytest.MonkeyPatch) -> Iterator[Drive]:
    """A source on a scenario. Its calls take scenario time only, which stands still unless somebody moves it."""
    sources: list[DcgmSource] = []

    def start(
        scenario: Scenario, *, address: str = "127.0.0.1:5555", interval: float = 1.0, timeout: float = 0.2
    ) -> Driver:
        playing = play_scenario(scenario)
        clock = playing.clock
        assert clock is not None
        monkeypatch.setattr(timeline, "time", types.SimpleNamespace(monotonic=lambda: clock.now))
        source = DcgmSource(address, bindings=bindings, interval=interval, timeout=timeout)
        sources.append(source)
        return Driver(source, playing)

    yield start
    for source in sources:
        source.close()
