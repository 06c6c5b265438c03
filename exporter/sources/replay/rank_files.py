"""The files of a trace: one file, a folder or an archive of ranks. Gzip is unpacked as it is read."""

from __future__ import annotations

import gzip
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

from exporter.sources.replay.json_stream import JsonStreamError
from exporter.sources.replay.traces import TraceError


def open_ranks(path: Path) -> Iterator[tuple[str, IO[bytes]]]:
    """(name, open file) of every trace in a file, folder or archive. Raises TraceError."""
    with naming_file(str(path)):
        if path.is_dir():
            found = sorted(each for each in path.iterdir() if _is_trace(each.name))
            if not found:
                raise TraceError(f"{path}: no .json or .json.gz file in this folder")
            for each in found:
                with each.open("rb") as file:
                    yield str(each), _unpacked(str(each), file)
        elif tarfile.is_tarfile(path):
            yield from _members(path)
        else:
            with path.open("rb") as file:
                yield str(path), _unpacked(str(path), file)


def _members(path: Path) -> Iterator[tuple[str, IO[bytes]]]:
    empty = True
    with tarfile.open(path) as archive:
        for member in archive:
            content = archive.extractfile(member) if member.isfile() and _is_trace(member.name) else None
            if content is not None:
                empty = False
                yield f"{path}: {member.name}", _unpacked(f"{path}: {member.name}", content)
    if empty:
        raise TraceError(f"{path}: no .json or .json.gz file in this archive")


def _is_trace(name: str) -> bool:
    return name.endswith((".json", ".json.gz")) and not Path(name).name.startswith(".")  # ._x: macOS adds them


def _unpacked(name: str, file: IO[bytes]) -> IO[bytes]:
    head = file.read(2)
    if not head:
        raise TraceError(f"{name}: the file is empty; record it again")
    file.seek(0)
    return cast("IO[bytes]", gzip.GzipFile(fileobj=file)) if head == b"\x1f\x8b" else file


@contextmanager
def naming_file(name: str) -> Iterator[None]:
    """Whatever reading a file raises, as a TraceError about ``name``."""
    try:
        yield
    except JsonStreamError as error:
        raise TraceError(f"{name}: {error}; record or copy it again") from error
    except (EOFError, zlib.error, gzip.BadGzipFile, tarfile.TarError) as error:
        raise TraceError(f"{name}: damaged or truncated ({error}); copy or record it again") from error
    except OSError as error:
        raise TraceError(f"{name}: cannot be read: {error.strerror or error}; check --source.path") from error
