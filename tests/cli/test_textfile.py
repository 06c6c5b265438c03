"""textfile: what is refused before anything is written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from exporter.cli.textfile import check_textfile
from exporter.config.loading import load
from exporter.config.option import Command
from exporter.config.settings import ConfigError


def check(*flags: tuple[str, str]) -> None:
    check_textfile(load(Command.TEXTFILE, dict(flags), {}).settings)


def test_a_file_in_a_folder_that_exists_is_taken(tmp_path: Path) -> None:
    check(("output", str(tmp_path / "honest_gpu.prom")))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("honest_gpu.txt", "expected a name that ends in .prom"),
        ("missing/honest_gpu.prom", "no such folder: .*/missing; expected an existing one, such as /var/lib/"),
        ("file/honest_gpu.prom", "no such folder: .*/file; expected"),
        ("folder.prom", "is a folder; expected a file"),
    ],
)
def test_a_wrong_file_is_refused_with_option_value_and_expectation(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "folder.prom").mkdir()
    with pytest.raises(ConfigError, match=rf"^--output: {tmp_path}/{name}: {message}"):
        check(("output", str(tmp_path / name)))


def test_a_folder_that_is_not_writable_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "honest_gpu.prom"
    if os.geteuid() == 0:  # root may write anywhere
        monkeypatch.setattr(os, "access", lambda folder, mode: not (mode & os.W_OK and folder == tmp_path))
    tmp_path.chmod(0o555)
    message = rf"^--output: {path}: the folder {tmp_path} is not writable for uid \d+; expected one in which"
    with pytest.raises(ConfigError, match=message):
        check(("output", str(path)))
    tmp_path.chmod(0o755)


def test_the_file_has_to_be_named() -> None:
    with pytest.raises(ConfigError, match=r"^--output: required: the file to write, such as /var/lib/"):
        check()


def test_it_cannot_write_more_often_than_it_measures(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^--interval: 1s: expected at least --sampling.interval, 2s"):
        check(("output", str(tmp_path / "x.prom")), ("interval", "1s"), ("sampling.interval", "2s"))
