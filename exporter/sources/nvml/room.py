"""Arrays that the driver fills, read into room that is kept: one call, where the binding asks for the size first."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from exporter.sources.nvml.library import FUNCTION_NOT_FOUND, INSUFFICIENT_SIZE

LARGEST = 1 << 16  # entries; a driver that asks for more is not believed

Fill = Callable[[Any, Any, Any], int]
"""Calls the function of the library (first) with the number of entries (second, a reference) and the array (third)."""


class Room:
    """For one function of the driver's library. Not thread safe."""

    def __init__(self, nvml: Any, function: str, entry: Any, size: int) -> None:
        """``entry``: the binding's structure. ``size``: entries at first; it grows when the driver needs more."""
        self._nvml, self._function, self._entry = nvml, function, entry
        self._array = (entry * size)()
        self._count = ctypes.c_uint()

    def filled(self, fill: Fill) -> list[Any]:
        """The entries, which the next call overwrites. NVMLError, also when the library is older than the function."""
        function = getattr(self._nvml.nvmlLib, self._function, None)
        if function is None:
            raise self._nvml.NVMLError(FUNCTION_NOT_FOUND)
        while True:
            self._count.value = len(self._array)
            code = fill(function, ctypes.byref(self._count), self._array)
            size = max(2 * len(self._array), self._count.value)
            if code != INSUFFICIENT_SIZE or size > LARGEST:
                break
            self._array = (self._entry * size)()
        if code != 0:
            raise self._nvml.NVMLError(code)
        entries: list[Any] = self._array[: self._count.value]
        return entries
