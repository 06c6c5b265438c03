"""A task that is repeated in a thread of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable


class RepeatingTask:
    """Calls ``step`` again and again; each call returns the seconds until the next one."""

    def __init__(self, name: str, step: Callable[[], float], last: Callable[[], object] | None = None) -> None:
        """``step`` catches its own errors: one that it lets through ends the thread. ``last`` is called at the end, in
        the same thread."""
        self._step, self._last = step, last
        self._stopping = False
        self._wake = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    @property
    def stopping(self) -> bool:
        """``stop`` has been called."""
        return self._stopping

    def start(self) -> None:
        """Begin with the first step; once."""
        self._thread.start()

    def wake(self) -> None:
        """The next step comes at once."""
        self._wake.set()

    def stop(self) -> None:
        """End after the step that is under way. Does not wait."""
        self._stopping = True
        self._wake.set()

    def join(self, timeout: float) -> bool:
        """Wait for the end; False when a step hangs: its thread is left behind. True if it was never started."""
        if self._thread.is_alive():
            self._thread.join(timeout)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while not self._stopping:
            self._wake.wait(self._step())
            self._wake.clear()
        if self._last is not None:
            self._last()
