"""A thread for calls that may never return."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Lane(Generic[T]):
    """One daemon thread that runs one job at a time.

    A job that hangs blocks this thread alone, and no second one is started beside it. Used by one thread, its owner.
    """

    def __init__(self, name: str) -> None:
        self._jobs: queue.SimpleQueue[Callable[[], T] | None] = queue.SimpleQueue()
        self._returned: queue.SimpleQueue[T | Exception] = queue.SimpleQueue()
        self._result: list[T | Exception] = []  # returned, and not taken yet
        self._busy = self._abandoned = False
        self._last: Callable[[], object] | None = None
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    @property
    def busy(self) -> bool:
        """A job is under way, or its result is still to be taken."""
        if self._abandoned and self.done(0.0):
            self._result.clear()
            self._busy = self._abandoned = False
        return self._busy

    def start(self, job: Callable[[], T]) -> bool:
        """Begin a job; False while busy."""
        if self.busy:
            return False
        self._busy = True
        self._jobs.put(job)
        return True

    def done(self, timeout: float) -> bool:
        """Whether the job has returned, after ``timeout`` seconds at most; its result can then be taken."""
        if self._busy and not self._result:
            try:
                self._result.append(self._returned.get(timeout=timeout))
            except queue.Empty:
                return False
        return bool(self._result)

    def take(self) -> T:
        """What the job returned or raised; only when it is done."""
        result = self._result.pop()
        self._busy = False
        if isinstance(result, Exception):
            raise result
        return result

    def abandon(self) -> None:
        """Stop waiting for the job: the lane stays busy until it returns, and its result is dropped."""
        self._abandoned = True

    def stop(self, last: Callable[[], object] | None = None) -> None:
        """End the thread when its job, if any, has returned; ``last`` is called in it then. Does not wait."""
        self._last = last
        self._jobs.put(None)

    def join(self, timeout: float) -> None:
        """Wait for the end of the thread; one that hangs is left behind."""
        self._thread.join(timeout)

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            try:
                result: T | Exception = job()
            except Exception as error:  # noqa: BLE001 - raised again in ``take``
                result = error
            self._returned.put(result)
        if self._last is not None:
            self._last()
