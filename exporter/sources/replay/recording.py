"""Our own recordings: every batch of a source as JSON lines, compressed with gzip. Writer and source.

First line: a header. Then one line a batch: ``end`` in seconds since the first batch, the devices when they changed,
problems and rejected counts when there are any, and the readings as [device, field, end, value, start, absence, label],
times relative like ``end``, what is empty at the end left out.
"""

from __future__ import annotations

import gzip
import itertools
import json
import math
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import IO, Any, cast

from exporter.fields import FIELDS
from exporter.model import Absence, Batch, Device, Entity, Problem, Reading
from exporter.sources.replay.traces import TraceError
from exporter.version import VERSION

FORMAT = "honest-gpu-exporter recording"
FORMAT_VERSION = 1
LONGEST_LINE = 1 << 24  # characters; a batch of a large node has some hundred thousand


class Recorder:
    """Writes batches to a file; call it with each. What was flushed can be read even when the end is missing."""

    def __init__(self, path: Path) -> None:
        """Creates the file, or empties it. OSError when that cannot be done."""
        self._file: IO[str] = gzip.open(path, "wt", encoding="utf-8", compresslevel=4)  # noqa: SIM115 - closed by close
        self._origin: float | None = None
        self._devices: dict[str, Sequence[Device]] = {}
        self.batches = 0
        self._write({"format": FORMAT, "version": FORMAT_VERSION, "exporter": VERSION})

    def __call__(self, batch: Batch) -> None:
        """Append one batch."""
        if self._origin is None:
            self._origin = batch.end
        line: dict[str, Any] = {"source": batch.source, "end": round(batch.end - self._origin, 6)}
        if self._devices.get(batch.source) != batch.devices:
            self._devices[batch.source] = batch.devices
            line["devices"] = [_pack_device(device) for device in batch.devices]
        if batch.details:
            line["details"] = dict(batch.details)
        if batch.problems:
            line["problems"] = [[p.what, p.why, p.remedy, _pack_entity(p.entity)] for p in batch.problems]
        if batch.rejected:
            line["rejected"] = [[field, why, count] for (field, why), count in batch.rejected.items()]
        numbers = {device.entity: number for number, device in enumerate(batch.devices)}
        line["readings"] = [
            _pack_reading(numbers[r.entity], r, self._origin) for r in batch.readings if r.entity in numbers
        ]
        self._write(line)
        self.batches += 1

    def close(self) -> None:
        """Finish the file."""
        self._file.close()

    def _write(self, line: dict[str, Any]) -> None:
        self._file.write(json.dumps(line, separators=(",", ":")) + "\n")


@dataclass(frozen=True, slots=True)
class _Frame:
    """One recorded batch, times relative to the first."""

    end: float
    devices: dict[str, Sequence[Device]]
    batch: Batch


class RecordingSource:
    """Plays a recording, at its own pace on the clock that it is read with; reads the file as it goes."""

    def __init__(self, name: str, path: Path, *, loop: bool) -> None:
        """Reads the head of the file. TraceError if this is not a recording, or has no batch."""
        self.name = name
        self._path = path
        self._loop = loop
        self._frames = _frames(path)
        self._next: _Frame | None = next(self._frames, None)
        if self._next is None:
            raise TraceError(f"{path}: the recording is empty: there is nothing to play")
        self._devices: dict[str, Sequence[Device]] = self._next.devices
        self._origin: float | None = None
        self._last = 0.0
        self._pace = 1.0

    def read(self, now: float) -> Batch:
        """All batches that are due by ``now``, as one."""
        if self._origin is None:
            self._origin = now
        readings: list[Reading] = []
        problems: list[Problem] = []
        rejected: dict[tuple[str, str], int] = {}
        end = now
        while self._next is not None and self._origin + self._next.end <= now + 1e-9:
            frame = self._next
            shift = self._origin
            readings += [
                r._replace(end=r.end + shift, start=None if r.start is None else r.start + shift)
                for r in frame.batch.readings
            ]
            problems = list(frame.batch.problems)
            for key, count in frame.batch.rejected.items():
                rejected[key] = rejected.get(key, 0) + count
            self._devices, end = frame.devices, shift + frame.end
            self._advance(frame)
        final = self._next is None
        devices = _merged(self._devices.values())
        details = {"recording": self._path.name}
        return Batch(self.name, end, devices, readings, tuple(problems), rejected, details, final=final)

    def close(self) -> None:
        """Closes the file."""
        self._frames = iter(())

    def _advance(self, frame: _Frame) -> None:
        if frame.end > self._last:
            self._pace = frame.end - self._last
        self._last, self._next = frame.end, None  # a line that is damaged ends the recording
        self._next = next(self._frames, None)
        if self._next is None and self._loop and self._origin is not None and frame.end > 0:
            self._origin += frame.end + self._pace
            self._last = 0.0
            self._frames = _frames(self._path)
            self._next = next(self._frames, None)


def _merged(sources: Iterable[Sequence[Device]]) -> list[Device]:
    """Each entity once, though several sources were recorded: the facts of the first, the fields of all."""
    merged: dict[Entity, Device] = {}
    for device in (device for listed in sources for device in listed):
        known = merged.get(device.entity, device)
        merged[device.entity] = replace(known, fields=known.fields | device.fields)
    return list(merged.values())


def is_recording(head: bytes) -> bool:
    """Whether a file that unpacks to ``head`` is a recording."""
    return head.lstrip().startswith(b'{"format":"' + FORMAT.encode())


def _frames(path: Path) -> Iterator[_Frame]:
    """A file cut short (the recorder was killed) ends where it is cut; a damaged line is an error."""
    devices: dict[str, Sequence[Device]] = {}
    try:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            _check_header(path, file.readline(LONGEST_LINE))
            for number in itertools.count(2):
                text = file.readline(LONGEST_LINE)
                if len(text) >= LONGEST_LINE:
                    raise TraceError(
                        f"{path}: line {number} is longer than {LONGEST_LINE} characters, so this is not a recording"
                    )
                if not text.endswith("\n"):
                    return  # the end, or the last line was being written
                yield _frame(path, number, text, devices)
    except EOFError:
        return
    except (OSError, zlib.error, UnicodeDecodeError) as error:
        raise TraceError(f"{path}: cannot be read as a recording: {error}") from error


def _check_header(path: Path, text: str) -> None:
    try:
        header = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise TraceError(f"{path}: cannot be read as a recording: {error}") from error
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise TraceError(f"{path}: not a recording of this exporter")
    if header.get("version") != FORMAT_VERSION:
        raise TraceError(
            f"{path}: recording format {header.get('version')}, but this exporter reads {FORMAT_VERSION}; "
            f"replay it with the version that wrote it, {header.get('exporter')}"
        )


def _frame(path: Path, number: int, text: str, devices: dict[str, Sequence[Device]]) -> _Frame:
    try:
        line = json.loads(text)
        source = str(line["source"])
        if "devices" in line:
            devices[source] = [_unpack_device(packed) for packed in line["devices"]]
        listed = devices[source]
        readings = [_unpack_reading(listed, packed) for packed in line["readings"]]
        problems = [
            Problem(str(what), str(why), str(remedy), _unpack_entity(entity))
            for what, why, remedy, entity in line.get("problems", ())
        ]
        rejected = {(str(field), str(why)): int(count) for field, why, count in line.get("rejected", ())}
        end = _finite(line["end"])
    except (KeyError, IndexError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise TraceError(f"{path}: line {number} is damaged ({type(error).__name__}: {error})") from error
    return _Frame(end, dict(devices), Batch(source, end, listed, readings, problems, rejected))


def _pack_entity(entity: Entity | None) -> list[Any] | None:
    return None if entity is None else list(entity)


def _unpack_entity(packed: list[Any] | None) -> Entity | None:
    return None if packed is None else Entity(str(packed[0]), None if packed[1] is None else int(packed[1]))


def _pack_device(device: Device) -> dict[str, Any]:
    return asdict(replace(device, fields=frozenset())) | {
        "entity": _pack_entity(device.entity),
        "fields": sorted(device.fields),
    }


def _unpack_device(packed: dict[str, Any]) -> Device:
    entity = _unpack_entity(packed["entity"])
    texts = {name: value for name, value in packed.items() if name not in ("entity", "fields", "mig_enabled")}
    if entity is None or not all(isinstance(text, str) for text in texts.values()):
        raise ValueError(f"not a device: {packed}")
    # a field that a later version records and this one does not know is left out, not refused
    fields = frozenset(packed["fields"]) & FIELDS.keys()
    return Device(entity, fields=fields, mig_enabled=bool(packed.get("mig_enabled")), **texts)


def _pack_reading(number: int, reading: Reading, origin: float) -> list[Any]:
    packed: list[Any] = [
        number,
        reading.field,
        round(reading.end - origin, 6),
        reading.value,
        None if reading.start is None else round(reading.start - origin, 6),
        None if reading.absence is None else reading.absence.value,
        reading.label or None,
    ]
    while packed[-1] is None:
        packed.pop()
    return packed


def _unpack_reading(devices: Sequence[Device], packed: list[Any]) -> Reading:
    number, field, end, value, start, absence, label = packed + [None] * (7 - len(packed))
    if field not in FIELDS:
        raise ValueError(f"unknown field: {field}")
    if number < 0 or (value is not None and absence is not None) or not isinstance(label or "", str):
        raise ValueError(f"not a reading: {packed}")
    return Reading(
        devices[number].entity,
        str(field),
        _finite(end),
        None if value is None else float(value),
        None if start is None else _finite(start),
        None if absence is None else Absence(absence),
        label or "",
    )


def _finite(time: object) -> float:
    """A time. ValueError when it is not finite."""
    seconds = float(cast("float", time))
    if not math.isfinite(seconds):
        raise ValueError(f"not a time: {seconds}")
    return seconds
