"""Reading files that others write."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from exporter.attribution.small_files import NotSmall, read_small


def test_the_whole_text_up_to_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"ab\xff")
    assert read_small(path, 3) == "ab\N{REPLACEMENT CHARACTER}"
    with pytest.raises(NotSmall, match="larger than 2 bytes"):
        read_small(path, 2)


def test_a_file_of_the_kernel() -> None:
    assert "Name:" in read_small(Path("/proc/self/status"))


def test_a_pipe_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path):
        with pytest.raises(OSError, match="not a regular file"):
            read_small(path)


def test_no_handle_is_left_open(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        with pytest.raises(OSError, match="not a regular file"):
            read_small(tmp_path)
    assert len(os.listdir("/proc/self/fd")) == before
