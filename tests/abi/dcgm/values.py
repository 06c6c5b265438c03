"""Values over time. Times are seconds of scenario time."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from .codes import Blank

FOREVER = math.inf


@dataclass(frozen=True)
class Window:
    """From a time on, until another (not inside)."""

    start: float = 0.0
    end: float = FOREVER


ALWAYS = Window()


@dataclass(frozen=True)
class Steps:
    """Each value holds from its time on; the first one also before it.

    A sample of a profiling field (but of the native counters) is the mean over its interval, else that of its moment.
    """

    points: tuple[tuple[float, float | Blank], ...]


def steps(*points: tuple[float, float | Blank]) -> Steps:
    return Steps(points)


@dataclass(frozen=True)
class Counter:
    """start + the integral of a rate per second; from zero again at each reset."""

    rate: float | Steps
    start: float = 0.0
    resets: tuple[float, ...] = ()


@dataclass(frozen=True)
class Events:
    """Samples only at these times, with these values."""

    points: tuple[tuple[float, float], ...]


Value = float | Blank | str | Steps | Counter | Events
Fields = Mapping[int, Value]
"""By field id. What is not named is blank (not supported; profiling fields: unset)."""
