"""The scenario's time, set by the test: a file of one native double that the player maps."""

import mmap
import struct
from pathlib import Path


class VirtualClock:
    def __init__(self, path: Path, start: float = 0.0) -> None:
        self.path = path
        path.write_bytes(struct.pack("d", start))
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), 8)

    @property
    def now(self) -> float:
        (seconds,) = struct.unpack_from("d", self._map)
        return float(seconds)

    def set(self, seconds: float) -> None:
        """Native format: one store of eight bytes, so that a reader never sees half of it."""
        struct.pack_into("d", self._map, 0, seconds)

    def advance(self, seconds: float) -> float:
        self.set(self.now + seconds)
        return self.now

    def close(self) -> None:
        self._map.close()
