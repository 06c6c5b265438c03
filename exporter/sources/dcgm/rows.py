"""Collects the rows that DCGM passes to a callback: dcgmGetLatestValues_v2 and dcgmGetValuesSince_v2."""

from __future__ import annotations

import ctypes
import struct

from exporter.sources.dcgm.session import Session
from exporter.sources.dcgm.values import FieldSample

_INTEGERS, _DOUBLE = frozenset({ord("i"), ord("t")}), ord("d")
HEAD = struct.Struct("@IHhiqq")
"""The head of dcgmFieldValue_v1: version, field id, type, status, time, value. Read as a whole: at 10 Hz the structs of
the bindings, which access each attribute twice, cost more than everything else."""
_FLOAT = struct.Struct("@d")
_CALLBACK = ctypes.CFUNCTYPE(
    ctypes.c_int32, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_int32, ctypes.c_void_p
)


class Rows:
    """``callback`` is for DCGM; its rows are kept until ``take``."""

    def __init__(self, session: Session) -> None:
        self.callback = _CALLBACK(self._add)
        self._rows: list[FieldSample] = []
        self._size = ctypes.sizeof(session.bindings.structs.c_dcgmFieldValue_v1)

    def take(self) -> list[FieldSample]:
        """All rows since the last ``take``."""
        rows, self._rows = self._rows, []
        return rows

    def _add(self, kind: int, entity: int, values: int, count: int, _: object) -> int:
        """Called by DCGM. It may not raise, and ``values`` are only valid until it returns."""
        for index in range(count):
            head = ctypes.string_at(values + index * self._size, HEAD.size)
            _version, field, type_, status, time, whole = HEAD.unpack(head)
            value = whole if type_ in _INTEGERS else _number(head) if type_ == _DOUBLE else None
            self._rows.append(FieldSample(kind, entity, field, status, time, value))
        return 0


def _number(head: bytes) -> float:
    (number,) = _FLOAT.unpack_from(head, HEAD.size - _FLOAT.size)
    return float(number)
