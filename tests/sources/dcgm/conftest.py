"""Fixtures: a source that meets the player."""

import types
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from exporter.sources.dcgm import timeline
from exporter.sources.dcgm.bindings import Bindings, find_bindings
from exporter.sources.dcgm.source import DcgmSource
from tests.abi.dcgm.bindings import bindings_folder, need_bindings
from tests.abi.dcgm.build import player_library
from tests.abi.dcgm.playing import Playing, play
from tests.abi.dcgm.scenario import Scenario

from .driving import Driver

Drive = Callable[..., Driver]


@pytest.fixture(scope="session")
def player() -> Path:
    need_bindings()
    return player_library()


@pytest.fixture
def bindings(player: Path) -> Bindings:
    folder = bindings_folder()
    return find_bindings(Path(folder) if folder else None, folders=())


@pytest.fixture
def play_scenario(player: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Scenario], Playing]:
    """From now on the library, when it starts, plays this scenario."""

    def start(scenario: Scenario) -> Playing:
        playing = play(scenario, player, tmp_path / str(len(list(tmp_path.iterdir()))))
        for name, value in playing.environment().items():
            monkeypatch.setenv(name, value)
        return playing

    return start


@pytest.fixture
def drive(
    play_scenario: Callable[[Scenario], Playing], bindings: Bindings, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Drive]:
    """A source on a scenario, in virtual time only: a read takes none."""
    monkeypatch.setattr(timeline, "time", types.SimpleNamespace(monotonic=lambda: 0.0))
    sources: list[DcgmSource] = []

    def start(
        scenario: Scenario, *, address: str = "127.0.0.1:5555", interval: float = 1.0, timeout: float = 0.2
    ) -> Driver:
        playing = play_scenario(scenario)
        source = DcgmSource(address, bindings=bindings, interval=interval, timeout=timeout)
        sources.append(source)
        return Driver(source, playing)

    yield start
    for source in sources:
        source.close()
