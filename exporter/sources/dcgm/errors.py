"""DCGM's return codes (dcgm_structs.h), what they mean for a reading, and what the person on call can do about them."""

from __future__ import annotations

import enum
from collections.abc import Mapping

from exporter.model import Absence


class Code(enum.IntEnum):
    """The return codes that are handled separately; the numbers are the same in all releases."""

    BADPARAM = -1
    NOT_CONFIGURED = -5
    NOT_SUPPORTED = -6
    UNINITIALIZED = -10
    TIMEOUT = -11
    VER_MISMATCH = -12
    NO_DATA = -14
    NOT_WATCHED = -16
    NO_PERMISSION = -17
    GPU_IS_LOST = -18
    FUNCTION_NOT_FOUND = -20
    CONNECTION_NOT_VALID = -21
    GPU_NOT_SUPPORTED = -22
    GROUP_INCOMPATIBLE = -23
    MAX_LIMIT = -24
    LIBRARY_NOT_FOUND = -25
    DUPLICATE_KEY = -26
    REQUIRES_ROOT = -29
    MODULE_NOT_LOADED = -33
    IN_USE = -34
    PROFILING_NOT_SUPPORTED = -36
    PROFILING_LIBRARY_ERROR = -37
    PROFILING_MULTI_PASS = -38
    INSUFFICIENT_DRIVER_VERSION = -44
    PAUSED = -54
    NVML_NOT_LOADED = -56
    GPUS_DETACHED = -67


CONNECTION_LOST = frozenset({Code.CONNECTION_NOT_VALID, Code.TIMEOUT, Code.UNINITIALIZED})
"""After these the connection is closed: it is not known what the hostengine did."""

COMBINATION_REFUSED = frozenset({Code.PROFILING_MULTI_PASS, Code.GROUP_INCOMPATIBLE})
"""The GPU has the fields, but cannot measure all of them at once."""

_ABOUT_FIELDS = frozenset({Code.BADPARAM, Code.NOT_SUPPORTED, Code.PROFILING_NOT_SUPPORTED})

START_HOSTENGINE = "systemctl start nvidia-dcgm, and check --dcgm.address"

_ABSENCES: Mapping[int, Absence] = {
    Code.NOT_SUPPORTED: Absence.NOT_SUPPORTED,
    Code.MODULE_NOT_LOADED: Absence.NOT_SUPPORTED,
    Code.PROFILING_NOT_SUPPORTED: Absence.NOT_SUPPORTED,
    Code.INSUFFICIENT_DRIVER_VERSION: Absence.NOT_SUPPORTED,
    Code.GPU_NOT_SUPPORTED: Absence.NOT_SUPPORTED,
    Code.NO_PERMISSION: Absence.NOT_PERMITTED,
    Code.REQUIRES_ROOT: Absence.NOT_PERMITTED,
    Code.PROFILING_LIBRARY_ERROR: Absence.LOCKED,
    Code.IN_USE: Absence.LOCKED,
    Code.PAUSED: Absence.PAUSED,
    Code.NO_DATA: Absence.NO_DATA,
    Code.NOT_WATCHED: Absence.NO_DATA,
}

_OTHER_PROFILER = "end the other profiler (Nsight, ncu, a second hostengine), or run nv-hostengine as root"

_REASONS: Mapping[int, tuple[str, str]] = {
    Code.TIMEOUT: ("the hostengine did not answer in time", "systemctl restart nvidia-dcgm"),
    Code.CONNECTION_NOT_VALID: ("the hostengine cannot be reached", START_HOSTENGINE),
    Code.UNINITIALIZED: ("the hostengine has ended", START_HOSTENGINE),
    Code.LIBRARY_NOT_FOUND: (
        "the DCGM library (libdcgm.so) was not found",
        "install datacenter-gpu-manager-4-core, or add the library's folder to LD_LIBRARY_PATH",
    ),
    Code.VER_MISMATCH: (
        "the Python bindings and the DCGM library are of releases that do not fit",
        "use the bindings of the installed DCGM: --dcgm.bindings /usr/share/datacenter-gpu-manager-4/bindings/python3",
    ),
    Code.FUNCTION_NOT_FOUND: (
        "the DCGM library is too old for this call",
        "upgrade DCGM, or use the bindings of the installed DCGM: --dcgm.bindings DIR",
    ),
    Code.NO_PERMISSION: (
        "it is not permitted",
        "run nv-hostengine as root, or set NVreg_RestrictProfilingToAdminUsers=0",
    ),
    Code.REQUIRES_ROOT: ("the hostengine would have to run as root", "run nv-hostengine as root"),
    Code.GPU_IS_LOST: ("the GPU has fallen off the bus", "look for Xid 79 in dmesg; reset the GPU or reboot the node"),
    Code.GPU_NOT_SUPPORTED: ("DCGM does not support this GPU", ""),
    Code.MAX_LIMIT: (
        "the hostengine has no more room for groups (64 of each kind, of all clients together)",
        "end clients that leave groups behind, or restart the hostengine",
    ),
    Code.MODULE_NOT_LOADED: (
        "DCGM's profiling module is not loaded: this GPU has none, or this DCGM does not know it",
        "check the GPU with `dcgmi profile --list`; upgrade DCGM for newer GPUs",
    ),
    Code.PROFILING_NOT_SUPPORTED: ("DCGM has no profiling for this GPU", "check with `dcgmi profile --list`"),
    Code.PROFILING_LIBRARY_ERROR: (
        "another client may hold the profiling hardware, or the hostengine lacks the right to it",
        _OTHER_PROFILER,
    ),
    Code.IN_USE: ("another client holds the profiling hardware", _OTHER_PROFILER),
    Code.PROFILING_MULTI_PASS: ("the GPU cannot measure these fields in one pass", ""),
    Code.GROUP_INCOMPATIBLE: ("these GPUs cannot be measured together", ""),
    Code.INSUFFICIENT_DRIVER_VERSION: ("the NVIDIA driver is too old", "upgrade the NVIDIA driver"),
    Code.PAUSED: ("profiling is paused", "honest-gpu-exporter profiling resume"),
    Code.NVML_NOT_LOADED: ("the hostengine has no NVIDIA driver to ask", "install the NVIDIA driver, check nvidia-smi"),
    Code.GPUS_DETACHED: ("the GPUs are detached from DCGM", "attach them again: dcgmi nvml attach"),
}


class CallFailed(Exception):
    """A call into DCGM that returned an error code."""

    def __init__(self, function: str, code: int, text: str) -> None:
        self.function, self.code = function, code
        self.reason, self.remedy = _REASONS.get(code, (text.rstrip(" ."), ""))
        super().__init__(f"{function}: {self.reason} (DCGM code {code})")

    @property
    def connection_lost(self) -> bool:
        return self.code in CONNECTION_LOST

    @property
    def about_fields(self) -> bool:
        """One of the fields may be the cause; the others may work without it."""
        return self.code in _ABOUT_FIELDS

    @property
    def absence(self) -> Absence:
        """Why the fields that were asked for have no value."""
        return absence_of(self.code)


def absence_of(code: int) -> Absence:
    """Why there is no value when DCGM returns this code."""
    return _ABSENCES.get(code, Absence.ERROR)
