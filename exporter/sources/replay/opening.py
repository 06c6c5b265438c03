"""Opens a trace or recording: finds the kind of file by its content, and makes the source that plays it."""

from __future__ import annotations

import gzip
import logging
import tarfile
import zlib
from pathlib import Path

from exporter.model import Source
from exporter.sources.playback import TimelineSource
from exporter.sources.replay.kineto import read_kineto
from exporter.sources.replay.nsight import read_nsight
from exporter.sources.replay.recording import RecordingSource, is_recording
from exporter.sources.replay.traces import TraceError

log = logging.getLogger(__name__)
NAME = "replay"
_SQLITE = b"SQLite format 3\0"
_HEAD = 4096


def open_replay(path: Path, *, loop: bool) -> Source:
    """A source that plays a trace, a folder or archive of ranks, or a recording. Raises TraceError."""
    if path.is_dir():
        return _timelines(path, "kineto", loop)
    raw, head = _heads(path)
    if raw.startswith(_SQLITE):
        return _timelines(path, "nsight", loop)
    if is_recording(head):
        return RecordingSource(NAME, path, loop=loop)
    return _timelines(path, "kineto", loop)


def _timelines(path: Path, kind: str, loop: bool) -> Source:
    tracks = read_nsight(path) if kind == "nsight" else read_kineto(path)
    for track in tracks:
        for note in track.notes:
            log.warning("%s, GPU %s: %s", path, track.device.index, note)
    duration = max(track.timeline.duration for track in tracks)
    if duration <= 0:
        raise TraceError(f"{path}: has no duration, so there is nothing to play; record it again")
    return TimelineSource(
        NAME,
        [(track.device, track.timeline) for track in tracks],
        loop=loop,
        duration=duration,
        details={"trace": kind, "estimated": "sm"},
    )


def _heads(path: Path) -> tuple[bytes, bytes]:
    """The first bytes, and the first bytes after unpacking."""
    try:
        with path.open("rb") as file:
            raw = file.read(_HEAD)
    except OSError as error:
        raise TraceError(f"{path}: cannot be read: {error.strerror}; check --source.path") from error
    if not raw:
        raise TraceError(f"{path}: the file is empty; record it again")
    if not raw.startswith(b"\x1f\x8b"):
        return raw, raw
    try:
        with gzip.open(path) as file:
            return raw, file.read(_HEAD)
    except (OSError, EOFError, zlib.error, tarfile.TarError) as error:
        raise TraceError(f"{path}: the gzip data is damaged or truncated ({error}); copy or record it again") from error
