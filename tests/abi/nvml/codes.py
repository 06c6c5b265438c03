"""NVML's numbers, from nvml.h: return codes, architectures, brands, event and value types."""

import enum

from ..player.values import Absence


class Code(Absence):
    """NVML's return codes; in place of a value, the call fails with it."""

    UNINITIALIZED = 1
    INVALID_ARGUMENT = 2
    NOT_SUPPORTED = 3
    NO_PERMISSION = 4
    ALREADY_INITIALIZED = 5
    NOT_FOUND = 6
    INSUFFICIENT_SIZE = 7
    INSUFFICIENT_POWER = 8
    DRIVER_NOT_LOADED = 9
    TIMEOUT = 10
    IRQ_ISSUE = 11
    LIBRARY_NOT_FOUND = 12
    FUNCTION_NOT_FOUND = 13
    CORRUPTED_INFOROM = 14
    GPU_IS_LOST = 15
    RESET_REQUIRED = 16
    OPERATING_SYSTEM = 17
    LIB_RM_VERSION_MISMATCH = 18
    IN_USE = 19
    MEMORY = 20
    NO_DATA = 21
    INSUFFICIENT_RESOURCES = 23
    ARGUMENT_VERSION_MISMATCH = 25
    NOT_READY = 27
    GPU_NOT_FOUND = 28
    INVALID_STATE = 29
    UNKNOWN = 999


class Architecture(enum.IntEnum):
    PASCAL = 4
    VOLTA = 5
    TURING = 6
    AMPERE = 7
    ADA = 8
    HOPPER = 9
    BLACKWELL = 10


class Brand(enum.IntEnum):
    TESLA = 2
    GEFORCE = 5
    NVIDIA = 14
    GEFORCE_RTX = 15


class EventType(enum.IntFlag):
    SINGLE_BIT_ECC = 0x1
    DOUBLE_BIT_ECC = 0x2
    PERFORMANCE_STATE = 0x4
    XID = 0x8
    CLOCK = 0x10


class ValueType(enum.IntEnum):
    """How a field's value is typed."""

    DOUBLE = 0
    UNSIGNED_INT = 1
    UNSIGNED_LONG = 2
    UNSIGNED_LONG_LONG = 3
    SIGNED_LONG_LONG = 4
    SIGNED_INT = 5
    UNSIGNED_SHORT = 6
