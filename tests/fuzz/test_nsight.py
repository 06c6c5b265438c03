"""SQLite exports of Nsight Systems: columns take values of any type, tables may be missing, bytes may be damaged."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.budget import fuzzed
from tests.fuzz.mutation import mutated_bytes
from tests.fuzz.test_traces import play
from tests.sources.replay.test_nsight import COPIES, GPUS, KERNELS, ORDINALS, STRINGS, export, process

LIMITS = ("maxBlocksPerSm", "maxRegistersPerSm", "maxShmemPerSm", "computeMajor")
# table -> column -> a value that is right
ROWS: dict[str, dict[str, object]] = {
    "CUPTI_ACTIVITY_KIND_KERNEL": {
        "start": 0,
        "end": 1000,
        "deviceId": 0,
        "shortName": 1,
        "registersPerThread": 16,
        "gridX": 8,
        "gridY": 1,
        "gridZ": 1,
        "blockX": 128,
        "blockY": 1,
        "blockZ": 1,
        "staticSharedMemory": 0,
        "dynamicSharedMemory": 0,
        "globalPid": process(7),
    },
    "CUPTI_ACTIVITY_KIND_MEMCPY": {
        "start": 10,
        "end": 500,
        "deviceId": 0,
        "bytes": 4096,
        "copyKind": 1,
        "globalPid": process(7),
    },
    "TARGET_INFO_CUDA_DEVICE": {"gpuId": 0, "cudaId": 0, "pid": 7, "uuid": "GPU-1"},
    "TARGET_INFO_GPU": {
        "id": 0,
        "name": "NVIDIA A100",
        "busLocation": "0000:01:00.0",
        "smCount": 108,
        "uuid": "GPU-1",
        "cuDevice": 0,
        "maxWarpsPerSm": 64,
        "maxBlocksPerSm": 32,
        "maxRegistersPerSm": 65536,
        "maxShmemPerSm": 167936,
        "computeMajor": 8,
    },
}
TABLES = (
    KERNELS,
    COPIES,
    ORDINALS,
    GPUS.replace("maxWarpsPerSm INT", ", ".join(("maxWarpsPerSm", *LIMITS))),
)
values = st.one_of(
    st.sampled_from(
        [None, 0, -1, 1, 2**62, 2**63 - 1, -(2**63), 1e308, -1e308, float("inf"), 0.5, "", "x", "1", b"\xff"]
    ),
    st.integers(-(2**63), 2**63 - 1),
    st.text(st.characters(codec="utf-8"), max_size=5),
)


@fuzzed(100)
@given(
    st.lists(st.dictionaries(st.sampled_from(sorted({c for row in ROWS.values() for c in row})), values, max_size=4))
)
def test_any_values(tmp_path: Path, changes: list[dict[str, object]]) -> None:
    path = tmp_path / "trace.sqlite"
    path.unlink(missing_ok=True)
    export(path, *TABLES, *STRINGS)
    with sqlite3.connect(path) as db:
        for change in [{}, *changes]:
            for table, right in ROWS.items():
                row = {column: change.get(column, value) for column, value in right.items()}
                columns = ", ".join(f'"{column}"' for column in row)
                db.execute(f"INSERT INTO {table} ({columns}) VALUES ({', '.join('?' * len(row))})", list(row.values()))
    db.close()
    play(path)


@fuzzed(50)
@given(
    st.sets(st.integers(0, 5)),
    st.sampled_from(["CUPTI_ACTIVITY_KIND_x y", 'CUPTI_ACTIVITY_KIND_"', "CUPTI_ACTIVITY_KIND_;"]),
)
def test_any_set_of_tables(tmp_path: Path, without: set[int], extra: str) -> None:
    path = tmp_path / "trace.sqlite"
    path.unlink(missing_ok=True)
    quoted = extra.replace('"', '""')
    everything = (*TABLES, *STRINGS[:1], f'CREATE TABLE "{quoted}" ("start" INT, "end" INT)')
    export(path, *(each for number, each in enumerate(everything) if number not in without))
    play(path)


@fuzzed(100)
@given(st.data())
def test_any_bytes(tmp_path: Path, data: st.DataObject) -> None:
    path = tmp_path / "whole.sqlite"
    if not path.exists():
        export(path, *TABLES, *STRINGS)
    damaged = tmp_path / "trace.sqlite"
    damaged.write_bytes(data.draw(mutated_bytes(path.read_bytes())))
    play(damaged)
