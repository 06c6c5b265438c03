"""Reads files that others write: never blocks on a pipe, never reads more than asked for."""

from __future__ import annotations

import os
import stat
from pathlib import Path

MOST = 65536  # bytes; a mapping of one GPU or job is some hundred


class NotSmall(OSError):
    """The file is larger than it has any reason to be."""


def read_small(path: Path, most: int = MOST) -> str:
    """The whole text, undecodable bytes replaced.

    Raises OSError when it is not there, not permitted, no plain file, or (NotSmall) larger than ``most`` bytes.
    """
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError("not a regular file")
        data = bytearray()
        while len(data) <= most and (more := os.read(handle, most + 1 - len(data))):  # /proc gives a page at a time
            data += more
    finally:
        os.close(handle)
    if len(data) > most:
        raise NotSmall(f"larger than {most} bytes")
    return data.decode("utf-8", errors="replace")
