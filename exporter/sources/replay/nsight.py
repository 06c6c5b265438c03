"""SQLite exports of Nsight Systems (nsys export --type sqlite), opened read-only.

Times are nanoseconds. Tables and columns differ between versions: what is missing is asked for, not assumed. Copy
kinds: cupti_activity.h, CUpti_ActivityMemcpyKind. A kernel names its GPU by CUDA ordinal; TARGET_INFO_GPU says which
one that is in ``cuDevice``. Its ``id`` is another numbering, which can run the other way round.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from exporter.model import Device, Entity
from exporter.sources.replay.launch import Limits, occupancy, resident_blocks, sm_share
from exporter.sources.replay.traces import TraceError, Track
from exporter.sources.timeline import Copy, Direction, Kernel, build

_KERNELS, _COPIES, _GPUS = "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY", "TARGET_INFO_GPU"
_KINDS: Mapping[int, Direction] = {
    1: "host_to_device",
    2: "device_to_host",
    3: "host_to_device",
    4: "device_to_host",
    8: "device",
    10: "peer",
}
_SCALE = 1e-9


def read_nsight(path: Path) -> list[Track]:
    """One track a GPU on which kernels ran. Raises TraceError."""
    try:
        connection = sqlite3.connect(f"file:{quote(str(path))}?mode=ro&immutable=1", uri=True)
    except sqlite3.Error as error:
        raise TraceError(f"{path}: cannot be opened: {error}") from error
    connection.row_factory = sqlite3.Row
    try:
        return _read(path, connection)
    except sqlite3.Error as error:
        raise TraceError(f"{path}: damaged, or not an Nsight Systems export: {error}") from error
    finally:
        connection.close()


def _read(path: Path, db: sqlite3.Connection) -> list[Track]:
    tables = {str(row[0]) for row in db.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")}
    if _KERNELS not in tables:
        raise TraceError(
            f"{path}: SQLite, but without the table {_KERNELS}: export an Nsight Systems report that traced CUDA "
            "(nsys profile -t cuda, then nsys export --type sqlite)"
        )
    start, end = _span(db, tables)
    gpus = {int(row["deviceId"]) for row in db.execute(f"SELECT DISTINCT deviceId FROM {_KERNELS}")}
    if not gpus:
        raise TraceError(f"{path}: no kernel in it: nothing ran on a GPU while it was recorded")
    facts = _facts(db, tables)
    return [_track(db, tables, number, facts.get(number, {}), start, end) for number in sorted(gpus)]


def _span(db: sqlite3.Connection, tables: set[str]) -> tuple[int, int]:
    """From the first to the last thing that happened, on host or GPU."""
    spans = []
    for table in tables:
        if table.startswith("CUPTI_ACTIVITY_KIND_") and {"start", "end"} <= _columns(db, table):
            row = db.execute(f'SELECT MIN("start"), MAX("end") FROM {table}').fetchone()
            if row[0] is not None and row[1] is not None:
                spans.append((int(row[0]), int(row[1])))
    return min((a for a, _ in spans), default=0), max((b for _, b in spans), default=0)


def _facts(db: sqlite3.Connection, tables: set[str]) -> dict[int, Mapping[str, Any]]:
    """CUDA ordinal -> the row of TARGET_INFO_GPU."""
    if _GPUS not in tables:
        return {}
    rows = [dict(row) for row in db.execute(f"SELECT * FROM {_GPUS}")]
    return {int(row["cuDevice"] if row.get("cuDevice") is not None else row["id"]): row for row in rows}


def _columns(db: sqlite3.Connection, table: str) -> set[str]:
    return {str(row["name"]) for row in db.execute(f"PRAGMA table_info({table})")}


def _track(
    db: sqlite3.Connection, tables: set[str], number: int, facts: Mapping[str, Any], start: int, end: int
) -> Track:
    sms = facts.get("smCount") or None
    notes = () if sms else ("the export does not say how many SMs this GPU has: SM active is absent",)
    uuid = facts.get("uuid")
    device = Device(
        Entity(f"GPU-{uuid}" if uuid and not str(uuid).startswith("GPU-") else str(uuid or f"TRACE-gpu{number}")),
        str(number),
        model=str(facts.get("name") or ""),
        pci_bus_id=str(facts.get("busLocation") or ""),
    )
    kernels = _kernels(db, number, facts, start)
    copies = list(_copies(db, tables, number, start))
    return Track(device, build(kernels, copies, duration=(end - start) * _SCALE), notes)


def _kernels(db: sqlite3.Connection, number: int, facts: Mapping[str, Any], origin: int) -> Iterator[Kernel]:
    sms, most = facts.get("smCount") or None, facts.get("maxWarpsPerSm") or None
    limits = Limits(most, facts.get("maxBlocksPerSm"), facts.get("maxRegistersPerSm"), facts.get("maxShmemPerSm"))
    names = "shortName" if "shortName" in _columns(db, _KERNELS) else "demangledName"
    query = (
        f'SELECT k."start", k."end", gridX * gridY * gridZ, blockX * blockY * blockZ, registersPerThread, '
        f"staticSharedMemory + dynamicSharedMemory, s.value LIKE '%nccl%' FROM {_KERNELS} k "
        f'LEFT JOIN StringIds s ON s.id = k.{names} WHERE k.deviceId = ? ORDER BY k."start"'
    )
    for start, end, blocks, threads, registers, shared, collective in db.execute(query, (number,)):
        begin, stop = (start - origin) * _SCALE, (end - origin) * _SCALE
        if not sms or not blocks or not threads:
            yield Kernel(begin, stop, None, None, bool(collective))
            continue
        resident = resident_blocks(limits, threads, registers or 0, shared or 0)
        warps = math.ceil(threads / 32)
        filled = occupancy(blocks / sms, resident, warps, most) if most else None
        yield Kernel(begin, stop, sm_share(blocks / sms, resident), filled, bool(collective))


def _copies(db: sqlite3.Connection, tables: set[str], number: int, origin: int) -> Iterator[Copy]:
    if _COPIES not in tables:
        return
    query = f'SELECT "start", "end", bytes, copyKind FROM {_COPIES} WHERE deviceId = ?'
    for start, end, size, kind in db.execute(query, (number,)):
        direction = _KINDS.get(kind)
        if direction is not None:
            yield Copy((start - origin) * _SCALE, (end - origin) * _SCALE, float(size), direction)
