"""One thread a GPU for calls into the driver that may never return."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Lane(Generic[T]):
    """At most one job at a time. While one hangs no other is taken, so that threads do not pile up."""

    def __init__(self, name: str) -> None:
        self._jobs: queue.SimpleQueue[Callable[[], T] | None] = queue.SimpleQueue()
        self._results: queue.SimpleQueue[T | BaseException] = queue.SimpleQueue()
        self._back: list[T | BaseException] = []  # a result that was waited for and is not taken yet
        self._late = False
        threading.Thread(target=self._run, name=name, daemon=True).start()

    @property
    def stuck(self) -> bool:
        """True while a job that was given up has not come back; what it then brings is dropped."""
        if self._late:
            try:
                self._results.get_nowait()
            except queue.Empty:
                return True
            self._late = False
        return False

    def start(self, job: Callable[[], T]) -> None:
        """Begin; only when not stuck."""
        self._jobs.put(job)

    def wait(self, timeout: float) -> None:
        """Until the job is back, for ``timeout`` seconds at most; ``finish`` then gives what came."""
        with contextlib.suppress(queue.Empty):
            self._back.append(self._results.get(timeout=timeout))

    def finish(self, timeout: float) -> T:
        """What the job gave or raised; TimeoutError after ``timeout`` seconds, and then the lane is stuck."""
        if self._back:
            result = self._back.pop()
        else:
            try:
                result = self._results.get(timeout=timeout) if timeout > 0 else self._results.get_nowait()
            except queue.Empty:
                self._late = True
                raise TimeoutError from None
        if isinstance(result, BaseException):
            raise result
        return result

    def close(self) -> None:
        """End the thread when its job, if any, is back. Does not wait."""
        self._jobs.put(None)

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            try:
                self._results.put(job())
            except BaseException as error:  # noqa: BLE001 - handed to whoever waits
                self._results.put(error)
