"""Traces of the PyTorch profiler (Kineto's Chrome-trace JSON): kernels and copies of one or several ranks.

Times are microseconds (libkineto: output_json.cpp), whatever displayTimeUnit says. Memsets are left out, they are not
busy time. The profiled time is that of operators and GPU work; the profiler's own start and end, which lie outside, are
not part of it.
"""

from __future__ import annotations

import gzip
import math
import re
import tarfile
import zlib
from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from io import TextIOWrapper
from pathlib import Path
from typing import IO, Any, cast

from exporter.model import Device, Entity
from exporter.sources.replay.json_stream import JsonStream, JsonStreamError
from exporter.sources.replay.launch import occupancy, sm_share
from exporter.sources.replay.traces import TraceError, Track
from exporter.sources.timeline import Copy, Direction, Kernel, StepFunction, build

_SPAN = frozenset({"kernel", "gpu_memcpy", "gpu_memset", "cpu_op", "user_annotation"})
_COPIES: tuple[tuple[str, Direction], ...] = (
    ("HtoD", "host_to_device"),
    ("DtoH", "device_to_host"),
    ("PtoP", "peer"),
    ("DtoD", "device"),
)
_COLLECTIVE = re.compile(r"nccl|rccl", re.IGNORECASE)
_LOADER = "enumerate(DataLoader)"
_NAN = float("nan")


@dataclass(slots=True)
class _Gpu:
    """What one GPU of one file did; columns, as there may be millions of kernels."""

    starts: array[float] = field(default_factory=lambda: array("d"))  # seconds
    ends: array[float] = field(default_factory=lambda: array("d"))
    blocks: array[float] = field(default_factory=lambda: array("d"))  # of the grid, over SMs; negative: of the grid
    threads: array[float] = field(default_factory=lambda: array("d"))  # a block
    estimate: array[float] = field(default_factory=lambda: array("d"))  # occupancy as the profiler has it
    collective: array[int] = field(default_factory=lambda: array("b"))
    copies: list[Copy] = field(default_factory=list)


@dataclass(slots=True)
class _Rank:
    """One file."""

    name: str
    gpus: dict[int, _Gpu] = field(default_factory=dict)
    properties: dict[int, Mapping[str, Any]] = field(default_factory=dict)
    rank: int | None = None
    start: float = math.inf
    end: float = -math.inf
    base: float = 0.0
    loader: list[tuple[float, float]] = field(default_factory=list)  # the main thread waits for the data loader


def read_kineto(path: Path) -> list[Track]:
    """One track a GPU, in the order of ranks. Raises TraceError."""
    ranks = [_read(name, file) for name, file in _files(path)]
    ranks = [rank for rank in ranks if rank.gpus]
    if not ranks:
        raise TraceError(f"{path}: no GPU kernel in it: record with ProfilerActivity.CUDA")
    ranks.sort(key=lambda rank: (rank.rank is None, rank.rank, _natural(rank.name)))
    together = max(rank.start for rank in ranks) < min(rank.end for rank in ranks)
    begin = min(rank.start for rank in ranks)
    note = () if together or len(ranks) == 1 else ("clocks of the ranks differ: each begins at its own zero",)
    tracks: list[Track] = []
    for number, rank in enumerate(ranks):
        origin = begin if together else rank.start
        for device, gpu in sorted(rank.gpus.items()):
            tracks.append(_track(len(tracks), number, rank, device, gpu, origin, note))
    return tracks


def _files(path: Path) -> Iterator[tuple[str, IO[bytes]]]:
    """(name, open file) of every trace in a file, folder or archive; gzip is unpacked as it is read."""
    try:
        if path.is_dir():
            found = sorted(p for p in path.iterdir() if p.name.endswith((".json", ".json.gz")))
            if not found:
                raise TraceError(f"{path}: no .json or .json.gz file in this folder")
            for each in found:
                with each.open("rb") as file:
                    yield str(each), _unpacked(file)
        elif tarfile.is_tarfile(path):
            with tarfile.open(path) as archive:
                for member in archive:
                    content = archive.extractfile(member) if member.name.endswith((".json", ".json.gz")) else None
                    if content is not None:
                        yield f"{path}: {member.name}", _unpacked(content)
        else:
            with path.open("rb") as file:
                yield str(path), _unpacked(file)
    except (EOFError, zlib.error, gzip.BadGzipFile, tarfile.TarError) as error:
        raise TraceError(f"{path}: damaged or cut short ({error}); copy or record it again") from error
    except OSError as error:
        raise TraceError(f"{path}: cannot be read: {error.strerror or error}; --source.path names it") from error


def _unpacked(file: IO[bytes]) -> IO[bytes]:
    head = file.read(2)
    file.seek(0)
    return cast("IO[bytes]", gzip.GzipFile(fileobj=file)) if head == b"\x1f\x8b" else file


def _read(name: str, file: IO[bytes]) -> _Rank:
    rank = _Rank(name)
    try:
        with TextIOWrapper(file, encoding="utf-8", errors="replace") as text:
            stream = JsonStream(text)
            for key, value in stream.members("traceEvents"):
                _member(rank, key, value)
    except JsonStreamError as error:
        raise TraceError(f"{name}: {error}; record it again, or copy it whole") from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise TraceError(f"{name}: damaged or cut short ({error}); copy or record it again") from error
    if "traceEvents" not in stream.keys:
        raise TraceError(f"{name}: JSON, but not a PyTorch profiler trace: it has no traceEvents")
    return rank


def _member(rank: _Rank, key: str, value: Any) -> None:
    if key == "traceEvents" and isinstance(value, dict):
        if value.get("ph") == "X":
            _event(rank, value)
    elif key == "deviceProperties" and isinstance(value, list):
        rank.properties = {int(each["id"]): each for each in value if isinstance(each, dict) and "id" in each}
    elif key == "distributedInfo" and isinstance(value, dict) and isinstance(value.get("rank"), int):
        rank.rank = value["rank"]
    elif key == "baseTimeNanoseconds" and isinstance(value, int):
        rank.base = value / 1e9


def _event(rank: _Rank, event: Mapping[str, Any]) -> None:
    kind = str(event.get("cat", "")).lower()
    if kind not in _SPAN:
        return
    try:
        start = float(event["ts"]) / 1e6
        end = start + float(event["dur"]) / 1e6
    except (KeyError, TypeError, ValueError):
        return
    rank.start, rank.end = min(rank.start, start), max(rank.end, end)
    name, args = str(event.get("name", "")), event.get("args") or {}
    if kind == "user_annotation" and name.startswith(_LOADER):
        rank.loader.append((start, end))
    if kind not in ("kernel", "gpu_memcpy") or not isinstance(args.get("device"), int):
        return
    gpu = rank.gpus.setdefault(args["device"], _Gpu())
    if kind == "kernel":
        _kernel(gpu, start, end, name, args)
        return
    for mark, direction in _COPIES:
        if mark in name and isinstance(args.get("bytes"), int | float):
            gpu.copies.append(Copy(start, end, float(args["bytes"]), direction))
            break


def _kernel(gpu: _Gpu, start: float, end: float, name: str, args: Mapping[str, Any]) -> None:
    threads, grid = _product(args.get("block")), _product(args.get("grid"))
    blocks = args.get("blocks per SM")
    estimate = args.get("est. achieved occupancy %")
    gpu.starts.append(start)
    gpu.ends.append(end)
    gpu.blocks.append(float(blocks) if isinstance(blocks, int | float) and blocks > 0 else -grid if grid else _NAN)
    gpu.threads.append(threads or _NAN)
    gpu.estimate.append(float(estimate) / 100 if isinstance(estimate, int | float) and estimate > 0 else _NAN)
    gpu.collective.append(bool(_COLLECTIVE.search(name)))


def _product(sizes: object) -> float | None:
    if not isinstance(sizes, list) or not sizes or not all(isinstance(size, int) and size > 0 for size in sizes):
        return None
    return float(math.prod(sizes))


def _track(
    index: int, number: int, rank: _Rank, device: int, gpu: _Gpu, origin: float, notes: tuple[str, ...]
) -> Track:
    properties = rank.properties.get(device, {})
    sms, most = _count(properties.get("numSms")), _count(properties.get("maxThreadsPerMultiprocessor"))
    length = rank.end - origin
    kernels = _kernels(gpu, origin, sms, most)
    copies = [Copy(c.start - origin, c.end - origin, c.bytes, c.direction) for c in gpu.copies]
    waits = sorted((max(0.0, start - origin), end - origin, 1.0) for start, end in rank.loader)
    levels = {"input_wait": StepFunction.from_segments(_disjoint(waits), length)} if waits else {}
    if not sms:
        notes = (*notes, "the trace does not say how many SMs this GPU has: SM active may be absent")
    label = rank.rank if rank.rank is not None else number
    return Track(
        Device(Entity(f"TRACE-rank{label}-gpu{device}"), str(index), model=str(properties.get("name", ""))),
        build(kernels, copies, duration=length, levels=levels),
        notes,
    )


def _kernels(gpu: _Gpu, origin: float, sms: int | None, most: int | None) -> Iterator[Kernel]:
    for start, end, blocks, threads, estimate, collective in zip(
        gpu.starts, gpu.ends, gpu.blocks, gpu.threads, gpu.estimate, gpu.collective, strict=True
    ):
        per_sm = blocks if blocks > 0 else -blocks / sms if sms and blocks < 0 else None
        share, busy = None, None
        if per_sm is not None:
            resident = _resident(per_sm, threads, estimate, most)
            share = sm_share(per_sm, resident)
            if most and threads > 0:
                busy = occupancy(per_sm, resident, math.ceil(threads / 32), max(1, most // 32))
        yield Kernel(start - origin, end - origin, share, busy, bool(collective))


def _resident(per_sm: float, threads: float, estimate: float, most: int | None) -> float | None:
    """Blocks at once on an SM, from the profiler's own estimate: min(blocks per SM, resident) x threads / most.

    The estimate comes in whole percent. None: all blocks are resident at once, or it cannot be told.
    """
    if not most or not threads > 0 or not estimate > 0 or per_sm * threads / most <= estimate + 0.005:
        return None
    return max(1.0, float(round(estimate * most / threads)))


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and value > 0 else None


def _disjoint(segments: Iterable[tuple[float, float, float]]) -> Iterator[tuple[float, float, float]]:
    last = 0.0
    for start, end, value in segments:
        if end > last:
            yield max(start, last), end, value
            last = end


def _natural(name: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdigit() else (0, part) for part in re.split(r"(\d+)", name)]
