"""Passes in the background: what they give, and when it is too old to be believed."""

from __future__ import annotations

from collections.abc import Iterable

from exporter.host.background import HostBackground
from exporter.host.reader import HostReader
from exporter.host.reading import HostReading, Pressure, ProcessesReading, Stall


class Scripted(HostReader):
    """CPU stall seconds, one a pass."""

    def __init__(self, *seconds: float) -> None:
        self._seconds = iter(seconds)

    def read(self, holders: Iterable[int]) -> HostReading:
        stall = Stall(next(self._seconds), {})
        return HostReading({"cpu": Pressure(stall, None)}, (), ProcessesReading({}))


def test_shares_are_of_the_time_between_passes() -> None:
    now = 0.0
    host = HostBackground(Scripted(100.0, 101.0, 90.0), lambda: now, 5.0)
    assert host.view is None
    host.read()
    assert host.view is not None
    assert host.view.pressure == {}
    now = 5.0
    host.read()
    assert host.view.pressure == {"cpu": 0.2}
    now = 10.0
    host.read()
    assert host.view.pressure == {}  # a counter that fell tells nothing


def test_a_pass_that_hangs_leaves_no_old_view_behind() -> None:
    now = 0.0
    host = HostBackground(Scripted(1.0, 2.0), lambda: now, 5.0)
    host.read()
    now = 15.0
    assert host.view is not None
    now = 15.5  # three intervals and a half second
    assert host.view is None
