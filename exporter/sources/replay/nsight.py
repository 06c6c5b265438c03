"""SQLite exports of Nsight Systems (nsys export --type sqlite), opened read-only.

Times are nanoseconds. Tables and columns differ between versions: what is missing is asked for, not assumed. Copy
kinds: cupti_activity.h, CUpti_ActivityMemcpyKind. A kernel names its GPU by the CUDA ordinal of its process, which
depends on that process's CUDA_VISIBLE_DEVICES. Which GPU that is, TARGET_INFO_CUDA_DEVICE says (pid, cudaId -> gpuId,
the ``id`` in TARGET_INFO_GPU), or in older exports ``cuDevice`` in TARGET_INFO_GPU. ``id`` is no ordinal: it can run
the other way round. Where neither is there, only what all GPUs of the export have in common is known.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from exporter.model import Device, Entity
from exporter.sources.replay.launch import SmLimits, occupancy, reserved_shared, resident_blocks, sm_share
from exporter.sources.replay.traces import GpuTrace, TraceError
from exporter.sources.timeline import Copy, Direction, Kernel, build

_KERNELS, _COPIES = "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY"
_GPUS, _ORDINALS = "TARGET_INFO_GPU", "TARGET_INFO_CUDA_DEVICE"
_PID = "(globalPid >> 24) & 0xFFFFFF"  # Nsight Systems export documentation: serialized process identifiers
_KINDS: Mapping[int, Direction] = {
    1: "host_to_device",
    2: "device_to_host",
    3: "host_to_device",
    4: "device_to_host",
    8: "device",
    10: "peer",
}
_SCALE = 1e-9


class _Place(NamedTuple):
    """How kernels and copies name a GPU. ``pid`` None: all processes number them alike, or that is not known."""

    ordinal: int
    pid: int | None


def read_nsight(path: Path) -> list[GpuTrace]:
    """One trace per GPU on which kernels ran. Raises TraceError."""
    try:
        connection = sqlite3.connect(f"file:{quote(str(path))}?mode=ro&immutable=1", uri=True)
    except sqlite3.Error as error:
        raise TraceError(f"{path}: cannot be opened: {error}") from error
    connection.row_factory = sqlite3.Row
    try:
        return _read(path, connection)
    except (sqlite3.Error, TypeError, ValueError, ArithmeticError) as error:  # any column may hold a value of any type
        raise TraceError(f"{path}: damaged, or not an Nsight Systems export: {error}") from error
    finally:
        connection.close()


def _read(path: Path, db: sqlite3.Connection) -> list[GpuTrace]:
    tables = {str(row[0]) for row in db.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")}
    if _KERNELS not in tables:
        raise TraceError(
            f"{path}: SQLite, but has no table {_KERNELS}: export an Nsight Systems report that traced CUDA "
            "(nsys profile -t cuda, then nsys export --type sqlite)"
        )
    start, end = _span(db, tables)
    gpus = _gpus(db, tables)
    if not gpus:
        raise TraceError(f"{path}: contains no kernel: nothing ran on a GPU during the recording")
    ordinals = [places[0].ordinal for _, places in gpus]
    alike = len(set(ordinals)) == len(ordinals)  # no two GPUs have the same ordinal, in different processes
    return [
        _track(db, tables, str(ordinal if alike else number), facts, places, start, end)
        for number, (ordinal, (facts, places)) in enumerate(zip(ordinals, gpus, strict=True))
    ]


def _span(db: sqlite3.Connection, tables: set[str]) -> tuple[int, int]:
    """From the first to the last event, on host or GPU."""
    spans = []
    for table in tables:
        if table.startswith("CUPTI_ACTIVITY_KIND_") and {"start", "end"} <= _columns(db, table):
            row = db.execute(f'SELECT MIN("start"), MAX("end") FROM {table}').fetchone()
            if row[0] is not None and row[1] is not None:
                spans.append((int(row[0]), int(row[1])))
    return min((a for a, _ in spans), default=0), max((b for _, b in spans), default=0)


def _gpus(db: sqlite3.Connection, tables: set[str]) -> list[tuple[Mapping[str, Any], list[_Place]]]:
    """Each GPU on which kernels ran: its row of TARGET_INFO_GPU as far as known, and where it is named."""
    rows = _rows(db, _GPUS) if _GPUS in tables else []
    used = [table for table in (_KERNELS, _COPIES) if table in tables]
    by_process = _ORDINALS in tables and all("globalPid" in _columns(db, table) for table in used)
    ordinals = _rows(db, _ORDINALS) if by_process else []
    pid = _PID if ordinals else "NULL"
    gpus: dict[object, tuple[Mapping[str, Any], list[_Place]]] = {}
    for table in used:
        for ordinal, process in db.execute(f"SELECT DISTINCT deviceId, {pid} FROM {table} ORDER BY 1, 2"):
            place = _Place(int(ordinal), process)
            facts = _facts(rows, ordinals, place)
            key = facts.get("uuid") or facts.get("busLocation") or place.ordinal
            if table == _KERNELS:
                gpus.setdefault(key, (facts, []))
            if key in gpus and place not in gpus[key][1]:
                gpus[key][1].append(place)
    return list(gpus.values())


def _facts(
    rows: Sequence[Mapping[str, Any]], ordinals: Sequence[Mapping[str, Any]], place: _Place
) -> Mapping[str, Any]:
    """What is known of the GPU at a place; of several that it may be, what they have in common."""
    named = [row for row in ordinals if row.get("cudaId") == place.ordinal]
    ids = {row.get("gpuId") for row in named if row.get("pid") == place.pid} or {row.get("gpuId") for row in named}
    may_be = [row for row in rows if row.get("id") in ids]
    may_be = may_be or [row for row in rows if row.get("cuDevice") == place.ordinal] or list(rows)
    return (
        {key: value for key, value in may_be[0].items() if all(row[key] == value for row in may_be)} if may_be else {}
    )


def _rows(db: sqlite3.Connection, table: str) -> list[dict[str, Any]]:
    return [dict(row) for row in db.execute(f"SELECT * FROM {table}")]


def _columns(db: sqlite3.Connection, table: str) -> set[str]:
    return {str(row["name"]) for row in db.execute(f"PRAGMA table_info({table})")}


def _track(
    db: sqlite3.Connection,
    tables: set[str],
    index: str,
    facts: Mapping[str, Any],
    places: Sequence[_Place],
    start: int,
    end: int,
) -> GpuTrace:
    notes = () if facts.get("smCount") else ("the export does not say how many SMs this GPU has: SM active is absent",)
    bus, uuid = str(facts.get("busLocation") or ""), str(facts.get("uuid") or "")
    if uuid and not uuid.startswith("GPU-"):
        uuid = f"GPU-{uuid}"
    if not uuid:
        notes = (*notes, "the export does not say which GPU this is")
    device = Device(
        Entity(uuid or f"TRACE-{bus or f'gpu{places[0].ordinal}'}"),
        index,
        model=str(facts.get("name") or ""),
        pci_bus_id=bus,
    )
    kernels = (kernel for place in places for kernel in _kernels(db, place, facts, start))
    copies = (copy for place in places for copy in _copies(db, tables, place, start))
    return GpuTrace(device, build(kernels, copies, duration=(end - start) * _SCALE), notes)


def _where(place: _Place) -> str:
    """The rows of a place that have a time."""
    process = "" if place.pid is None else f" AND {_PID} = {place.pid}"
    return f'deviceId = {place.ordinal}{process} AND "start" IS NOT NULL AND "end" >= "start"'


def _kernels(db: sqlite3.Connection, place: _Place, facts: Mapping[str, Any], origin: int) -> Iterator[Kernel]:
    sms, most = facts.get("smCount") or None, facts.get("maxWarpsPerSm") or None
    limits = SmLimits(
        most,
        facts.get("maxBlocksPerSm"),
        facts.get("maxRegistersPerSm"),
        facts.get("maxShmemPerSm"),
        reserved_shared(facts.get("computeMajor")),
    )
    names = "shortName" if "shortName" in _columns(db, _KERNELS) else "demangledName"
    query = (
        f'SELECT k."start", k."end", gridX * gridY * gridZ, blockX * blockY * blockZ, registersPerThread, '
        f"staticSharedMemory + dynamicSharedMemory, s.value LIKE '%nccl%' FROM {_KERNELS} k "
        f'LEFT JOIN StringIds s ON s.id = k.{names} WHERE {_where(place)} ORDER BY k."start"'
    )
    for start, end, blocks, threads, registers, shared, collective in db.execute(query):
        begin, stop = (start - origin) * _SCALE, (end - origin) * _SCALE
        if not sms or not blocks or not threads:
            yield Kernel(begin, stop, None, None, bool(collective))
            continue
        resident = resident_blocks(limits, threads, registers or 0, shared or 0)
        warps = math.ceil(threads / 32)
        filled = occupancy(blocks / sms, resident, warps, most) if most else None
        yield Kernel(begin, stop, sm_share(blocks / sms, resident), filled, bool(collective))


def _copies(db: sqlite3.Connection, tables: set[str], place: _Place, origin: int) -> Iterator[Copy]:
    if _COPIES not in tables:
        return
    query = f'SELECT "start", "end", bytes, copyKind FROM {_COPIES} WHERE {_where(place)} AND bytes >= 0'
    for start, end, size, kind in db.execute(query):
        direction = _KINDS.get(kind)
        if direction is not None:
            yield Copy((start - origin) * _SCALE, (end - origin) * _SCALE, float(size), direction)
