"""Pausing and resuming for others."""

import pytest

from exporter.model import SourceError
from exporter.sources.dcgm.bindings import Bindings
from exporter.sources.dcgm.profiling import pause, pause_while, resume
from exporter.sources.dcgm.session import shut_down
from tests.abi.dcgm.codes import Code
from tests.abi.dcgm.happenings import failing
from tests.abi.dcgm.values import Window

from .conftest import Drive, PlayScenario
from .nodes import a100, board, gpu, node
from .observing import Observer

ADDRESS = "localhost:5555"


def test_a_pause_holds_for_everybody_until_it_is_over(drive: Drive, bindings: Bindings) -> None:
    observer = Observer(drive(node(a100())))
    assert observer.until(5.0)[board()].profiling.value == "ok"
    pause(ADDRESS, bindings, 1.0)
    view = observer.until(12.0)[board()]
    assert view.profiling.value == "paused"
    assert view.means["busy"] == 1.0
    resume(ADDRESS, bindings, 1.0)
    view = observer.until(20.0)[board()]
    assert view.profiling.value == "ok"
    assert view.means["sm"] == pytest.approx(0.98)
    assert observer.driver.report.open_handles == 1


def test_it_is_resumed_whatever_happens(play_scenario: PlayScenario, bindings: Bindings) -> None:
    playing = play_scenario(node(a100()))
    with pytest.raises(KeyboardInterrupt):
        pause_while(ADDRESS, bindings, 1.0, _interrupted)
    pause_while(ADDRESS, bindings, 1.0, lambda: None)
    report = playing.report()
    assert report.called("dcgmProfPause") == report.called("dcgmProfResume") == 2
    assert report.open_handles == 0
    shut_down(bindings)


def _interrupted() -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("function", [pause, resume])
def test_where_there_is_nothing_to_pause(play_scenario: PlayScenario, bindings: Bindings, function: object) -> None:
    playing = play_scenario(node(gpu()))
    with pytest.raises(SourceError, match="Hopper"):
        function(ADDRESS, bindings, 1.0)  # type: ignore[operator]
    assert playing.report().open_handles == 0
    shut_down(bindings)


def test_errors_name_their_remedy(play_scenario: PlayScenario, bindings: Bindings) -> None:
    play_scenario(node(a100(), call_faults=(failing("dcgmProfPause", Code.REQUIRES_ROOT),)))
    with pytest.raises(SourceError, match="root") as caught:
        pause(ADDRESS, bindings, 1.0)
    assert "root" in caught.value.remedy
    shut_down(bindings)
    play_scenario(node(a100(), gone=(Window(),)))
    with pytest.raises(SourceError, match="no hostengine") as caught:
        pause(ADDRESS, bindings, 0.05)
    assert "systemctl" in caught.value.remedy
    shut_down(bindings)
    with pytest.raises(SourceError, match="nothing to pause from outside"):
        pause("embedded", bindings, 1.0)
    with pytest.raises(ValueError, match="port"):
        pause("node:x", bindings, 1.0)
