"""Values over time, and the times themselves: seconds of scenario time."""

import enum
import math
from dataclasses import dataclass

FOREVER = math.inf


@dataclass(frozen=True)
class Window:
    """From a time on, until another (not inside)."""

    start: float = 0.0
    end: float = FOREVER


ALWAYS = Window()


class Absence(enum.IntEnum):
    """What stands in place of a value, and says why there is none; each interface has its own."""


@dataclass(frozen=True)
class Steps:
    """Each value holds from its time on; the first one also before it."""

    points: tuple[tuple[float, float | Absence], ...]


def steps(*points: tuple[float, float | Absence]) -> Steps:
    return Steps(points)


@dataclass(frozen=True)
class Counter:
    """start + the integral of a rate per second; from zero again at each reset. It has no mean, only its value."""

    rate: float | Steps
    start: float = 0.0
    resets: tuple[float, ...] = ()


@dataclass(frozen=True)
class Events:
    """Samples only at these times, with these values."""

    points: tuple[tuple[float, float], ...]
