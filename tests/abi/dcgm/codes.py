"""Numbers of DCGM's headers that scenarios and tests name."""

import enum

from ..player.values import Absence


class Code(enum.IntEnum):
    """DCGM's return codes."""

    BADPARAM = -1
    GENERIC_ERROR = -3
    NOT_CONFIGURED = -5
    NOT_SUPPORTED = -6
    NVML_ERROR = -8
    UNINITIALIZED = -10
    TIMEOUT = -11
    VER_MISMATCH = -12
    NO_DATA = -14
    NOT_WATCHED = -16
    NO_PERMISSION = -17
    GPU_IS_LOST = -18
    CONNECTION_NOT_VALID = -21
    GROUP_INCOMPATIBLE = -23
    MAX_LIMIT = -24
    DUPLICATE_KEY = -26
    REQUIRES_ROOT = -29
    INSUFFICIENT_SIZE = -31
    MODULE_NOT_LOADED = -33
    IN_USE = -34
    PROFILING_NOT_SUPPORTED = -36
    PROFILING_LIBRARY_ERROR = -37
    PROFILING_MULTI_PASS = -38
    INSUFFICIENT_DRIVER_VERSION = -44
    PAUSED = -54
    NVML_NOT_LOADED = -56
    GPUS_DETACHED = -67


class EntityKind(enum.IntEnum):
    GPU = 1
    SWITCH = 3
    GPU_INSTANCE = 4
    COMPUTE_INSTANCE = 5
    LINK = 6
    CPU = 7
    CPU_CORE = 8


class LinkState(enum.IntEnum):
    NOT_SUPPORTED = 0
    DISABLED = 1
    DOWN = 2
    UP = 3


class Blank(Absence):
    """A value that is none; its status is 0 all the same."""

    UNSET = 0
    NOT_FOUND = 1
    NOT_SUPPORTED = 2
    NOT_PERMITTED = 3
