"""The player of DCGM: libdcgm.so.4."""

import functools
from pathlib import Path

from ..player.build import Player, build

SONAME = "libdcgm.so.4"
STANDIN = "honest-test-hostengine"
"""The process that requests go to where they shall cost something (trip.c)."""
PLAYER = Player(
    name="DCGM",
    folder=Path(__file__).parent,
    soname=SONAME,
    exports=("dcgm*", "Dcgm*", "errorString"),
    older="libdcgm.so.3",  # what bindings of 3.x look for; the scenario says how old the library is
    helper=(STANDIN, "standin/hostengine.c"),
)


@functools.cache
def player_library(without: frozenset[str] = frozenset()) -> Path:
    """The folder, for _dcgmInit, that holds the library; functions named in ``without`` are missing symbols."""
    return build(PLAYER, without)
