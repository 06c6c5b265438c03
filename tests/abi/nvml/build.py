"""The player of NVML: libnvidia-ml.so.1."""

import functools
from pathlib import Path

from ..player.build import Player, build

PLAYER = Player(name="NVML", folder=Path(__file__).parent, soname="libnvidia-ml.so.1", exports=("nvml*",))


@functools.cache
def player_library(without: frozenset[str] = frozenset()) -> Path:
    """The folder, for LD_LIBRARY_PATH, that holds the library; functions named in ``without`` are missing symbols."""
    return build(PLAYER, without)
