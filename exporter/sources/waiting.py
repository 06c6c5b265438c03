"""Waits for a source that cannot be opened yet: drivers come up after pods."""

from __future__ import annotations

from collections.abc import Callable

from exporter.model import Batch, Source


class WaitingSource:
    """Tries to open the source at each read until it opens, then is that source."""

    def __init__(self, name: str, open_source: Callable[[], Source]) -> None:
        """``open_source`` raises SourceError while there is nothing to open."""
        self._name = name
        self._open = open_source
        self._inner: Source | None = None

    @property
    def name(self) -> str:
        return self._name

    def read(self, now: float) -> Batch:
        """As the source within; SourceError while there is none."""
        if self._inner is None:
            self._inner = self._open()
        return self._inner.read(now)

    def close(self) -> None:
        if self._inner is not None:
            self._inner.close()
