"""Traces of the PyTorch profiler (Kineto's Chrome-trace JSON): kernels and copies of one or several ranks.

Times are microseconds (libkineto: output_json.cpp), whatever displayTimeUnit says, since baseTimeNanoseconds where that
is given. Memsets are left out, they are not busy time. The profiled time is that of operators and GPU work; the
profiler's own start and end, which lie outside, are not part of it. PCIe bytes are those of the copies in the trace:
what kernels read of pinned memory or the driver moves by itself is not there. They are a lower bound, and a direction
without a copy is absent.

"est. achieved occupancy %" is min(blocks per SM, resident) * threads / maxThreadsPerMultiprocessor in whole percent
(libkineto: DeviceProperties.cpp): averaged over all SMs of the first wave. It gives the resident blocks. libkineto
computes it with no dynamic shared memory beyond 48 KiB allowed, so that launches with more come out as 0: that 0 means
not known, and registers, shared memory and warps give the resident blocks instead.
"""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from io import TextIOWrapper
from itertools import count
from pathlib import Path
from typing import IO, Any, cast

from exporter.model import Device, Entity
from exporter.sources.replay.json_stream import JsonStream
from exporter.sources.replay.launch import SmLimits, occupancy, reserved_shared, resident_blocks, sm_share
from exporter.sources.replay.rank_files import naming_file, open_ranks
from exporter.sources.replay.traces import GpuTrace, TraceError
from exporter.sources.timeline import Copy, Direction, Kernel, StepFunction, build

_SPAN = frozenset({"kernel", "gpu_memcpy", "gpu_memset", "cpu_op", "user_annotation"})
_COPIES: tuple[tuple[str, Direction], ...] = (
    ("HtoD", "host_to_device"),
    ("HtoA", "host_to_device"),
    ("DtoH", "device_to_host"),
    ("AtoH", "device_to_host"),
    ("PtoP", "peer"),
    ("DtoD", "device"),
)
_COLLECTIVE = re.compile(r"nccl|rccl", re.IGNORECASE)
_LOADER = "enumerate(DataLoader)"
_NAN = float("nan")
_LARGEST = 1 << 31  # of sizes of a launch and of a GPU
_LATEST = 1e18  # microseconds; times since 1970 are 2e15


def _doubles() -> array[float]:
    return array("d")


@dataclass(slots=True)
class _Gpu:
    """What one GPU of one file did; columns, as there may be millions of kernels. NaN: not in the trace."""

    starts: array[float] = field(default_factory=_doubles)  # seconds
    ends: array[float] = field(default_factory=_doubles)
    blocks: array[float] = field(default_factory=_doubles)  # of the grid, over SMs; negative: of the grid
    threads: array[float] = field(default_factory=_doubles)  # a block
    estimate: array[float] = field(default_factory=_doubles)  # occupancy as the profiler has it
    registers: array[float] = field(default_factory=_doubles)  # a thread
    shared: array[float] = field(default_factory=_doubles)  # bytes a block
    collective: array[int] = field(default_factory=lambda: array("b"))
    copy_starts: array[float] = field(default_factory=_doubles)
    copy_ends: array[float] = field(default_factory=_doubles)
    copy_bytes: array[float] = field(default_factory=_doubles)
    copy_kinds: array[int] = field(default_factory=lambda: array("b"))  # index into _COPIES


@dataclass(slots=True)
class _Rank:
    """One file."""

    name: str
    gpus: dict[int, _Gpu] = field(default_factory=dict)
    properties: dict[int, Mapping[str, Any]] = field(default_factory=dict)
    rank: int | None = None
    start: float = math.inf
    end: float = -math.inf
    base: int = 0  # nanoseconds, what the file's times count from
    zero: float = _NAN  # microseconds since base, what start, end and all columns count from: the first event
    loader: list[tuple[float, float]] = field(default_factory=list)  # the main thread waits for the data loader
    damaged: int = 0  # events on a GPU without a valid time


def read_kineto(path: Path) -> list[GpuTrace]:
    """One trace per GPU, in the order of ranks. Raises TraceError."""
    ranks = [_read(name, file) for name, file in open_ranks(path)]
    ranks = [rank for rank in ranks if rank.gpus]
    if not ranks:
        raise TraceError(f"{path}: contains no GPU kernel; record with ProfilerActivity.CUDA")
    ranks.sort(key=lambda rank: (rank.rank is None, rank.rank, _natural(rank.name)))
    labels = _labels(path, ranks)
    first = ranks[0]
    offsets = [(rank.base - first.base) / 1e9 + (rank.zero - first.zero) / 1e6 for rank in ranks]  # of their zeros
    begins = [rank.start + offset for rank, offset in zip(ranks, offsets, strict=True)]
    ends = [rank.end + offset for rank, offset in zip(ranks, offsets, strict=True)]
    together = max(begins) < min(ends)
    note = () if together or len(ranks) == 1 else ("the ranks' clocks differ: each starts at zero",)
    tracks: list[GpuTrace] = []
    for label, rank, offset in zip(labels, ranks, offsets, strict=True):
        origin = min(begins) - offset if together else rank.start
        for device, gpu in sorted(rank.gpus.items()):
            tracks.append(_track(len(tracks), label, rank, device, gpu, origin, note))
    return tracks


def _labels(path: Path, ranks: Sequence[_Rank]) -> list[int]:
    """The rank of each file; files without one get the free numbers, in order."""
    taken: dict[int, str] = {}
    for rank in ranks:
        if rank.rank is not None:
            if rank.rank in taken:
                raise TraceError(
                    f"{path}: {taken[rank.rank]} and {rank.name} are both rank {rank.rank}: keep one file per rank, "
                    "or two GPUs would have the same identity"
                )
            taken[rank.rank] = rank.name
    free = (number for number in count() if number not in taken)
    return [next(free) if rank.rank is None else rank.rank for rank in ranks]


def _read(name: str, file: IO[bytes]) -> _Rank:
    rank = _Rank(name)
    with naming_file(name), TextIOWrapper(file, encoding="utf-8", errors="replace") as text:
        stream = JsonStream(text)
        for key, value in stream.members("traceEvents"):
            _member(rank, key, value)
    if "traceEvents" not in stream.keys:
        raise TraceError(f"{name}: JSON, but not a PyTorch profiler trace: it has no traceEvents")
    return rank


def _member(rank: _Rank, key: str, value: Any) -> None:
    if key == "baseTimeNanoseconds" and isinstance(value, int) and abs(value) < 1 << 63:
        rank.base = value
    if not isinstance(value, dict):
        return
    if key == "traceEvents" and value.get("ph") == "X":
        _event(rank, value)
    elif key == "deviceProperties" and isinstance(value.get("id"), int):
        rank.properties[value["id"]] = value
    elif key == "distributedInfo" and isinstance(value.get("rank"), int):
        rank.rank = value["rank"]


def _event(rank: _Rank, event: Mapping[str, Any]) -> None:
    kind = str(event.get("cat", "")).lower()
    if kind not in _SPAN:
        return
    args = event.get("args")
    args = args if isinstance(args, dict) else {}
    device = args.get("device", args.get("inDevice"))  # inDevice: copies between GPUs
    on_gpu = kind in ("kernel", "gpu_memcpy")
    try:
        time, length = float(event["ts"]), float(event["dur"])
    except (KeyError, TypeError, ValueError, OverflowError):
        time = length = _NAN
    if not (abs(time) < _LATEST and 0 <= length < _LATEST) or (on_gpu and not isinstance(device, int)):
        rank.damaged += on_gpu
        return
    if math.isnan(rank.zero):
        rank.zero = time
    start = (time - rank.zero) / 1e6  # subtracted first: seconds since 1970 have no room for nanoseconds
    end = start + length / 1e6
    rank.start, rank.end = min(rank.start, start), max(rank.end, end)
    name = str(event.get("name", ""))
    if kind == "user_annotation" and name.startswith(_LOADER):
        rank.loader.append((start, end))
    if on_gpu:
        gpu = rank.gpus.setdefault(cast("int", device), _Gpu())
        (_kernel if kind == "kernel" else _copy)(gpu, start, end, name, args)


def _copy(gpu: _Gpu, start: float, end: float, name: str, args: Mapping[str, Any]) -> None:
    size = _number(args.get("bytes"))
    kind = next((number for number, (mark, _) in enumerate(_COPIES) if mark in name), None)
    if kind is not None and size >= 0:
        gpu.copy_starts.append(start)
        gpu.copy_ends.append(end)
        gpu.copy_bytes.append(size)
        gpu.copy_kinds.append(kind)


def _kernel(gpu: _Gpu, start: float, end: float, name: str, args: Mapping[str, Any]) -> None:
    threads, grid = _product(args.get("block")), _product(args.get("grid"))
    blocks = _number(args.get("blocks per SM"))
    gpu.starts.append(start)
    gpu.ends.append(end)
    gpu.blocks.append(blocks if blocks > 0 else -grid if grid else _NAN)
    gpu.threads.append(threads or _NAN)
    gpu.estimate.append(_number(args.get("est. achieved occupancy %")) / 100)
    gpu.registers.append(_number(args.get("registers per thread")))
    gpu.shared.append(_number(args.get("shared memory")))
    gpu.collective.append(bool(_COLLECTIVE.search(name)))


def _number(value: object) -> float:
    """NaN if it is not a number, or not a size: libkineto divides by a number of SMs that it may not know."""
    return float(value) if isinstance(value, int | float) and 0 <= value < 1e300 else _NAN


def _product(sizes: object) -> float | None:
    if not isinstance(sizes, list) or not 0 < len(sizes) <= 3:
        return None
    known = [whole for size in sizes if (whole := _count(size)) is not None]
    return float(math.prod(known)) if len(known) == len(sizes) else None


def _track(
    index: int, label: int, rank: _Rank, device: int, gpu: _Gpu, origin: float, notes: tuple[str, ...]
) -> GpuTrace:
    properties = rank.properties.get(device, {})
    length = rank.end - origin
    waits = sorted((max(0.0, start - origin), end - origin, 1.0) for start, end in rank.loader)
    levels = {"input_wait": StepFunction.from_segments(_disjoint(waits), length)} if waits else {}
    if not _count(properties.get("numSms")):
        notes = (*notes, "the trace does not say how many SMs this GPU has: SM active may be absent")
    if rank.damaged:
        notes = (*notes, f"{rank.damaged} GPU events without a valid time or device were ignored")
    return GpuTrace(
        Device(Entity(f"TRACE-rank{label}-gpu{device}"), str(index), model=str(properties.get("name", ""))),
        build(_kernels(gpu, origin, properties), _copies(gpu, origin), duration=length, levels=levels),
        notes,
    )


def _copies(gpu: _Gpu, origin: float) -> Iterator[Copy]:
    for start, end, size, kind in zip(gpu.copy_starts, gpu.copy_ends, gpu.copy_bytes, gpu.copy_kinds, strict=True):
        yield Copy(start - origin, end - origin, size, _COPIES[kind][1])


def _kernels(gpu: _Gpu, origin: float, properties: Mapping[str, Any]) -> Iterator[Kernel]:
    sms, most = _count(properties.get("numSms")), _count(properties.get("maxThreadsPerMultiprocessor"))
    limits = SmLimits(
        warps=most // 32 if most else None,
        registers=_count(properties.get("regsPerMultiprocessor")),
        shared=_count(properties.get("sharedMemPerMultiprocessor")),
        reserved=reserved_shared(_count(properties.get("computeMajor"))),
    )
    for start, end, blocks, threads, estimate, registers, shared, collective in zip(
        gpu.starts,
        gpu.ends,
        gpu.blocks,
        gpu.threads,
        gpu.estimate,
        gpu.registers,
        gpu.shared,
        gpu.collective,
        strict=True,
    ):
        per_sm = blocks if blocks > 0 else -blocks / sms if sms and blocks < 0 else None
        share, filled = None, None
        if per_sm is not None:
            resident = _resident(limits, per_sm, threads, estimate, registers, shared)
            share = sm_share(per_sm, resident)
            if limits.warps and threads > 0:
                filled = occupancy(per_sm, resident, math.ceil(threads / 32), limits.warps)
        yield Kernel(start - origin, end - origin, share, filled, bool(collective))


def _resident(
    limits: SmLimits, per_sm: float, threads: float, estimate: float, registers: float, shared: float
) -> float | None:
    """Blocks at once on an SM: by the profiler's estimate, else by what a block takes. None when it is not known."""
    if not limits.warps or not threads > 0:
        return None
    if estimate > 0:
        most = 32 * limits.warps
        if per_sm * threads / most <= estimate + 0.005:  # whole percent: all of them
            return math.inf
        return max(1.0, float(round(estimate * most / threads)))
    if math.isnan(registers) or math.isnan(shared):
        return None
    return resident_blocks(limits, int(threads), int(registers), int(shared))


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and 0 < value < _LARGEST else None


def _disjoint(segments: Iterable[tuple[float, float, float]]) -> Iterator[tuple[float, float, float]]:
    last = 0.0
    for start, end, value in segments:
        if end > last:
            yield max(start, last), end, value
            last = end


def _natural(name: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdecimal() else (0, part) for part in re.split(r"(\d+)", name)]
