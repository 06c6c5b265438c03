"""Each content of the sources is compiled once, whoever asks for it, and however many at once."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from .build import Player, build, compiler
from .meeting import ROOT

BUILD = """
import sys
from pathlib import Path
from tests.abi.player.build import Player, build
print(build(Player("TOY", Path(sys.argv[1]), "libtoy.so", ("toy*",))))
"""


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Player:
    """A player of one function, in a cache of its own."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy" / "toy.c").write_text("int toy(void);\nint toy(void) { return 1; }\n")
    return Player("TOY", tmp_path / "toy", "libtoy.so", ("toy*",))


def test_side_by_side_it_is_compiled_once(toy: Player, tmp_path: Path) -> None:
    counted = tmp_path / "compiler"
    counted.write_text(f'#!/bin/sh\ncase "$*" in *-shared*) echo >> {tmp_path}/runs;; esac\nexec {compiler()} "$@"\n')
    counted.chmod(0o755)
    environment = os.environ | {"CC": str(counted), "TMPDIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", BUILD, str(toy.folder)]
    processes = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    folders = {process.communicate(timeout=60)[0].strip() for process in processes}
    assert len(folders) == 1
    assert (Path(folders.pop()) / "libtoy.so").is_file()
    assert (tmp_path / "runs").read_text() == "\n"


def test_another_content_is_another_library(toy: Player) -> None:
    first = build(toy)
    assert build(toy) == first
    assert build(toy, ["toy"]) != first
    source = toy.folder / "toy.c"
    source.write_text(source.read_text().replace("return 1", "return 2"))
    assert build(toy) != first


def test_what_does_not_compile_leaves_nothing_behind(toy: Player, tmp_path: Path) -> None:
    (toy.folder / "toy.c").write_text("int toy(void) { return unknown; }\n")
    for _ in range(2):
        with pytest.raises(RuntimeError, match="unknown"):
            build(toy)
    cache = tmp_path / f"honest-players-{os.getuid()}"
    assert [path.name for path in cache.iterdir()] == ["lock"]


def test_a_cache_that_others_can_write_into_is_refused(toy: Player, tmp_path: Path) -> None:
    cache = tmp_path / f"honest-players-{os.getuid()}"
    cache.mkdir()
    cache.chmod(0o777)
    with pytest.raises(RuntimeError, match="of this user alone"):
        build(toy)


def test_shared_sources_are_part_of_every_player(toy: Player) -> None:
    library = (build(toy) / "libtoy.so").read_bytes()
    assert b"honest_test_calls" in library
    assert b"HONEST_TEST_TOY_SCENARIO" in library
