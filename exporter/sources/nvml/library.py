"""The driver's library through `pynvml`: loading it, its error codes, and calls that fill an array."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from types import ModuleType
from typing import Any

from exporter.model import Absence, SourceError

# nvml.h nvmlReturn_t
INVALID_ARGUMENT, NOT_SUPPORTED, NO_PERMISSION, NOT_FOUND, INSUFFICIENT_SIZE, NO_DATA, NOT_READY = 2, 3, 4, 6, 7, 21, 27
DRIVER_NOT_LOADED, LIBRARY_NOT_FOUND, FUNCTION_NOT_FOUND, MISMATCH, VERSION_MISMATCH = 9, 12, 13, 18, 25
GPU_IS_LOST, RESET_REQUIRED, GPU_NOT_FOUND = 15, 16, 28
LOST = frozenset({GPU_IS_LOST, RESET_REQUIRED, GPU_NOT_FOUND})

_ABSENCES = {
    NOT_SUPPORTED: Absence.NOT_SUPPORTED,
    FUNCTION_NOT_FOUND: Absence.NOT_SUPPORTED,  # the driver is older than the function
    NO_PERMISSION: Absence.NOT_PERMITTED,
    NOT_FOUND: Absence.NOT_FOUND,
    NO_DATA: Absence.NO_DATA,
    NOT_READY: Absence.NO_DATA,
}
_OPENING = {
    LIBRARY_NOT_FOUND: (
        "the NVIDIA driver's library libnvidia-ml.so.1 is not here",
        "install the driver, or run the container with the NVIDIA runtime (NVIDIA_VISIBLE_DEVICES=all)",
    ),
    DRIVER_NOT_LOADED: (
        "the NVIDIA driver is not loaded",
        "modprobe nvidia; dmesg | grep -i nvrm says why it does not load",
    ),
    NO_PERMISSION: ("no permission to open the NVIDIA driver", "check the access rights of /dev/nvidiactl"),
    MISMATCH: (
        "the driver's library and its kernel module are of different versions",
        "reboot, or unload and load the module: the driver was updated under the running kernel",
    ),
}


def load() -> ModuleType:
    """`pynvml` (nvidia-ml-py), imported when it is needed: it costs 18 MiB."""
    import pynvml

    module: ModuleType = pynvml
    return module


def open_library(nvml: Any) -> None:
    """Initialize. SourceError says what is missing and what fixes it."""
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        text, remedy = _OPENING.get(error.value, (f"the NVIDIA driver cannot be opened: {error}", "nvidia-smi"))
        raise SourceError(text, remedy) from error


def absence(error: Any) -> Absence:
    """Why a value is absent, from an NVMLError."""
    return _ABSENCES.get(error.value, Absence.ERROR)


def text(value: object) -> str:
    """A string; older bindings return bytes."""
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def number(value: Any, kind: int) -> float:
    """The number in an nvmlValue_t; ``kind``: nvml.h nvmlValueType_t."""
    return float(getattr(value, _MEMBERS.get(kind, "uiVal")))


_MEMBERS = {0: "dVal", 1: "uiVal", 2: "ulVal", 3: "ullVal", 4: "sllVal", 5: "siVal", 6: "usVal"}


LARGEST = 1 << 16  # entries; a driver that asks for more is in error

Fill = Callable[[Any, Any, Any], int]
"""Calls the function of the library (first) with the number of entries (second, a reference) and the array (third)."""


class ReusedArray:
    """The array that one function of the library fills, kept between calls: one call, where the binding makes
    another one to ask for the size. Not thread safe."""

    def __init__(self, nvml: Any, function: str, entry: Any, size: int) -> None:
        """``entry``: the binding's structure. ``size``: entries at first; it grows when the driver needs more."""
        self._nvml, self._function, self._entry = nvml, function, entry
        self._array = (entry * size)()
        self._count = ctypes.c_uint()

    def filled(self, fill: Fill) -> list[Any]:
        """The entries; the next call overwrites them. NVMLError, also if the library is older than the function."""
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
