"""What is worth a log line: the first time, a change, a few an hour. What goes on unchanged is not written again."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class Condition:
    """Whether something works. Both changes are news; that it still fails for the same reason is not. Written by one
    thread, read by any."""

    def __init__(self) -> None:
        self.reason = "not read yet"  # why it does not work; empty while it does

    @property
    def up(self) -> bool:
        return not self.reason

    def failed(self, reason: str) -> bool:
        """It does not work; True when the reason is another than before."""
        before, self.reason = self.reason, reason or "no reason given"
        return self.reason != before

    def worked(self) -> bool:
        """It works; True when it did not before."""
        before, self.reason = self.reason, ""
        return bool(before)


class Reported(Generic[K]):
    """What has been written already."""

    def __init__(self, most: float = math.inf) -> None:
        """``most``: messages that are remembered; beyond them ``first`` finds nothing new."""
        self._most = most
        self._known: set[K] = set()

    def first(self, message: K) -> bool:
        """True once for each message, for ever."""
        if message in self._known or len(self._known) >= self._most:
            return False
        self._known.add(message)
        return True

    def new(self, standing: Iterable[K]) -> list[K]:
        """Of all that is the case now, what was not at the last call. What is over is new when it comes again."""
        now = dict.fromkeys(standing)
        new = [message for message in now if message not in self._known]
        self._known = set(now)
        return new


class RateLimit:
    """At most ``most`` lines in ``span`` seconds."""

    def __init__(self, most: int, span: float) -> None:
        self._span = span
        self._lines: deque[float] = deque(maxlen=most)  # when the last ones were written

    def allows(self, now: float) -> bool:
        """Whether a line may be written."""
        return len(self._lines) < (self._lines.maxlen or 0) or now - self._lines[0] >= self._span

    def written(self, now: float) -> None:
        """A line was."""
        self._lines.append(now)
