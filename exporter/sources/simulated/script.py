"""Writes down what happens on one GPU during one pattern, event by event."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from exporter.sources.simulated.mix import Mix
from exporter.sources.timeline import Copy, Direction, Kernel

PATTERN = 61.0
"""Seconds after which a workload repeats itself. No scrape interval in use (10, 15, 30, 60 s) divides it, so that a
reader who samples rarely does not see the same instants again and again."""

BOARD_WATTS = 700.0  # default power limit of an H100 SXM
HOUSEKEEPING = 350e3  # bytes per second and direction that the driver moves over PCIe on any GPU


@dataclass(frozen=True, slots=True)
class Activity:
    """What the processes on one GPU, or on one instance of it, do during [0, PATTERN]."""

    kernels: Sequence[Kernel] = ()
    copies: Sequence[Copy] = ()
    processes: int = 1
    memory: float = 0.0  # share of the device memory that they hold
    power_limit: float = BOARD_WATTS  # set by the administrator
    main_thread: float = 0.3  # share of a core that the busiest process' main thread takes
    pressure: float = 0.02  # share of the time in which tasks of the host waited for CPU or storage


class Script:
    """Events one after the other from 0 on; what would run over PATTERN is cut there."""

    def __init__(self) -> None:
        self.now = 0.0
        self._kernels: list[Kernel] = []
        self._copies: list[Copy] = []
        for direction in ("host_to_device", "device_to_host"):
            self._copies.append(Copy(0.0, PATTERN, HOUSEKEEPING * PATTERN, direction))

    @property
    def over(self) -> bool:
        """True when the pattern is full."""
        return self.now >= PATTERN

    def run(self, seconds: float, mix: Mix, *, collective: bool = False) -> None:
        """Kernels of this mix for that long; then time goes on behind them."""
        self.beside(seconds, mix, collective=collective)
        self.now += seconds

    def beside(self, seconds: float, mix: Mix, *, collective: bool = False) -> None:
        """The same on another stream: what is written next runs at the same time."""
        if not self.over:
            self._kernels.append(mix.kernel(self.now, min(self.now + seconds, PATTERN), collective=collective))

    def wait(self, seconds: float) -> None:
        """Nothing runs for that long."""
        self.now += seconds

    def copy(self, seconds: float, rate: float, direction: Direction) -> None:
        """A copy at ``rate`` bytes per second, on another stream."""
        if not self.over:
            end = min(self.now + seconds, PATTERN)
            self._copies.append(Copy(self.now, end, rate * (end - self.now), direction))

    def activity(
        self,
        *,
        memory: float,
        processes: int = 1,
        power_limit: float = BOARD_WATTS,
        main_thread: float = 0.3,
        pressure: float = 0.02,
    ) -> Activity:
        """All of it, by processes that hold ``memory`` of the device."""
        return Activity(self._kernels, self._copies, processes, memory, power_limit, main_thread, pressure)
