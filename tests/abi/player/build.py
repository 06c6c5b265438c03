"""Compiles a player's library once per content of its sources; all test processes of a user share the result."""

import dataclasses
import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

SHARED = Path(__file__).parent
WARNINGS = ("-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O1", "-pthread")
FLAGS = (*WARNINGS, "-fPIC", "-fvisibility=hidden", "-shared")


@dataclass(frozen=True)
class Player:
    name: str
    """As messages and the environment have it: NVML or DCGM."""
    folder: Path
    """Of its sources."""
    soname: str
    exports: tuple[str, ...]
    """Globs of the functions that the library shows."""
    older: str | None = None
    """A second name of the library, which callers of an older release look for."""
    helper: tuple[str, str] | None = None
    """The name and the source (in the folder) of a program that the library starts."""


def compiler() -> str:
    """The C compiler; skips the test where there is none."""
    found = shutil.which(os.environ.get("CC", "gcc"))
    if found is None:
        pytest.skip("no C compiler (gcc, or the one that CC names) to build the players with")
    return found


def _run(command: Sequence[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"a player does not build:\n{done.stderr}")
    return done.stdout


def _export_map(player: Player, without: Iterable[str]) -> str:
    """A linker script that takes functions out, as a library that is too old to have them."""
    shown = " ".join(f"{name};" for name in (*player.exports, "honest_test_*"))
    hidden = " ".join(f"{name};" for name in (*sorted(without), "*"))
    return f"{{ global: {shown} local: {hidden} }};\n"


def _sources(player: Player) -> list[Path]:
    return sorted([*SHARED.glob("*.c"), *player.folder.glob("*.c")])


def _inputs(player: Player, gcc: str, without: Iterable[str]) -> Iterator[bytes]:
    """Everything that decides what comes out, wherever it lies."""
    yield repr((dataclasses.replace(player, folder=Path()), sorted(without), FLAGS)).encode()
    yield f"{gcc} {_run([gcc, '--version'])}".encode()
    yield Path(__file__).read_bytes()
    for folder in (SHARED, player.folder):
        for path in sorted([*folder.rglob("*.c"), *folder.rglob("*.h")]):
            yield f"\0{path.relative_to(folder)}\0".encode() + path.read_bytes()


def _compile(player: Player, gcc: str, without: Iterable[str], folder: Path) -> None:
    exports = folder / "exports.map"
    exports.write_text(_export_map(player, without), encoding="ascii")
    linking = (f"-Wl,-soname,{player.soname}", f"-Wl,--version-script={exports}", "-o", str(folder / player.soname))
    named = f'-DPLAYER="{player.name}"'
    _run([gcc, *FLAGS, named, *linking, *map(str, _sources(player)), "-lm"])
    if player.helper is not None:
        program, source = player.helper
        _run([gcc, *WARNINGS, "-o", str(folder / program), str(player.folder / source)])
    if player.older is not None:
        (folder / player.older).symlink_to(player.soname)


def _cache() -> Path:
    """A folder that only this user can write into."""
    folder = Path(tempfile.gettempdir()) / f"honest-players-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if folder.is_symlink() or found.st_uid != os.getuid() or found.st_mode & 0o022:
        raise RuntimeError(f"{folder} is not a folder of this user alone")
    return folder


def build(player: Player, without: Iterable[str] = ()) -> Path:
    """The folder that holds the library; functions named in ``without`` are missing symbols.

    A folder appears under its final name when it is complete, so that whoever finds it may use it.
    """
    gcc = compiler()
    without = frozenset(without)
    digest = hashlib.sha256()
    for part in _inputs(player, gcc, without):
        digest.update(part)
    folder = _cache() / f"{player.name.lower()}-{digest.hexdigest()[:24]}"
    with (_cache() / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # whoever comes second waits, and finds it built
        if not folder.is_dir():
            with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
                unfinished = Path(scratch) / "player"
                unfinished.mkdir()
                _compile(player, gcc, without, unfinished)
                unfinished.rename(folder)
    return folder
