"""Values of DCGM's fields over time. Times are seconds of scenario time.

Of steps, a sample of a profiling field (but of the native counters) is the mean over its interval, else the value of
its moment.
"""

from collections.abc import Mapping

from ..player.values import ALWAYS, FOREVER, Counter, Events, Steps, Window, steps
from .codes import Blank

__all__ = ["ALWAYS", "FOREVER", "Counter", "Events", "Fields", "Steps", "Value", "Window", "steps"]

Value = float | Blank | str | Steps | Counter | Events
Fields = Mapping[int, Value]
"""By field id. What is not named is blank (not supported; profiling fields: unset)."""
