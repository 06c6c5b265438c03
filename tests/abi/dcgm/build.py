"""Compiles the player: libdcgm.so.4, once, and once more for each set of functions left out."""

import functools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SONAME = "libdcgm.so.4"
OLDER = "libdcgm.so.3"
"""What bindings of 3.x look for: the same library, whose scenario says how old it is."""
FLAGS = ("-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O1", "-fPIC", "-pthread", "-fvisibility=hidden")
STANDIN = "honest-test-hostengine"
"""The process that requests go to where they shall cost something (trip.c)."""
STANDIN_FLAGS = ("-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O1", "-pthread")
EXPORTS = ("dcgm*", "Dcgm*", "errorString", "honest_test_*")


def compiler() -> str:
    """The C compiler; skips the test where there is none."""
    found = shutil.which(os.environ.get("CC", "gcc"))
    if found is None:
        pytest.skip("no C compiler (gcc, or the one that CC names) to build the DCGM player with")
    return found


def _export_map(without: Iterable[str]) -> str:
    """A linker script that takes functions out, as a library that is too old to have them."""
    shown = " ".join(f"{name};" for name in EXPORTS)
    hidden = " ".join(f"{name};" for name in (*sorted(without), "*"))
    return f"{{ global: {shown} local: {hidden} }};\n"


def _build_standin(gcc: str, folder: Path) -> None:
    partial = folder / f"{STANDIN}.{os.getpid()}"
    command = [gcc, *STANDIN_FLAGS, "-o", str(partial), str(HERE / "standin" / "hostengine.c")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"the stand-in for a hostengine does not build:\n{done.stderr}")
    partial.replace(folder / STANDIN)


def build_player(folder: Path, *, without: Iterable[str] = (), flags: Iterable[str] = ()) -> Path:
    """The folder, for _dcgmInit, that holds the library; functions named in ``without`` are missing symbols."""
    gcc = compiler()
    folder.mkdir(parents=True, exist_ok=True)
    exports = folder / "exports.map"
    exports.write_text(_export_map(without), encoding="ascii")
    sources = sorted(str(path) for path in HERE.glob("*.c"))
    partial = folder / f"{SONAME}.{os.getpid()}"
    linking = ("-shared", f"-Wl,-soname,{SONAME}", f"-Wl,--version-script={exports}", "-o", str(partial))
    command = [gcc, *FLAGS, *flags, *linking, *sources, "-lm"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"the DCGM player does not build:\n{done.stderr}")
    partial.replace(folder / SONAME)
    _build_standin(gcc, folder)
    if not (folder / OLDER).is_symlink():
        (folder / OLDER).symlink_to(SONAME)
    return folder


_folders: list[tempfile.TemporaryDirectory[str]] = []
"""Until the process ends."""


@functools.cache
def player_library(without: frozenset[str] = frozenset()) -> Path:
    """As build_player, once per process."""
    folder = tempfile.TemporaryDirectory(prefix="honest-dcgm-player-")
    _folders.append(folder)
    return build_player(Path(folder.name), without=without)
