"""Nsight Systems exports."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from exporter.sources.replay.nsight import read_nsight
from exporter.sources.replay.traces import TraceError
from tests.data import capture

KERNELS = (
    'CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL ("start" INT, "end" INT, deviceId INT, shortName INT, '
    "registersPerThread INT, gridX INT, gridY INT, gridZ INT, blockX INT, blockY INT, blockZ INT, "
    "staticSharedMemory INT, dynamicSharedMemory INT, globalPid INT)"
)
COPIES = (
    'CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY ("start" INT, "end" INT, deviceId INT, bytes INT, copyKind INT, '
    "globalPid INT)"
)
ORDINALS = "CREATE TABLE TARGET_INFO_CUDA_DEVICE (gpuId INT, cudaId INT, pid INT, uuid TEXT)"
GPUS = (
    "CREATE TABLE TARGET_INFO_GPU (id INT, name TEXT, busLocation TEXT, smCount INT, uuid TEXT, cuDevice INT, "
    "maxWarpsPerSm INT)"
)
LIMITS = ("maxBlocksPerSm", "maxRegistersPerSm", "maxShmemPerSm", "computeMajor")


def export(path: Path, *statements: str) -> Path:
    with sqlite3.connect(path) as db:
        for statement in statements:
            db.execute(statement)
    db.close()
    return path


def kernel(start: int, end: int, device: int, blocks: int, name: int = 1, pid: int = 0) -> str:
    values = f"{start},{end},{device},{name},16,{blocks},1,1,512,1,1,0,0,{process(pid)}"
    return f"INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES ({values})"


def process(pid: int) -> int:
    """A globalPid: the machine, the process, and 24 bits for a thread."""
    return (1 << 48) | (pid << 24)


STRINGS = ("CREATE TABLE StringIds (id INT, value TEXT)", "INSERT INTO StringIds VALUES (1,'saxpy'),(2,'ncclKernel')")


def test_saxpy_on_two_of_108_sms() -> None:
    (track,) = read_nsight(capture("traces/saxpy_a100_nsys2022.sqlite"))
    timeline = track.timeline
    busy, sm = (timeline.integral(c, 0.0, timeline.duration) or 0.0 for c in ("busy", "sm"))
    assert busy == pytest.approx(5 * 0.0177, rel=0.01)
    assert sm / busy == pytest.approx(2 / 108)
    assert timeline.integral("pcie_receive", 0.0, timeline.duration) == pytest.approx(2 * 5 * 262144000)
    assert track.device.entity.uuid == "GPU-74e128b2-90b6-b409-07c8-33bee5ff6f88"


def test_a_gpu_is_what_the_mapping_says(tmp_path: Path) -> None:
    """Nsight's ids run opposite to the CUDA ordinals that kernels name."""
    path = export(
        tmp_path / "two.sqlite",
        KERNELS,
        GPUS,
        *STRINGS,
        "INSERT INTO TARGET_INFO_GPU VALUES (0,'big','a',100,'GPU-big',1,64),(1,'small','b',10,'GPU-small',0,64)",
        kernel(0, 1_000_000_000, 0, 5),
        kernel(0, 1_000_000_000, 1, 5, name=2),
    )
    small, big = read_nsight(path)
    assert (small.device.entity.uuid, big.device.entity.uuid) == ("GPU-small", "GPU-big")
    assert small.timeline.integral("sm", 0.0, 1.0) == pytest.approx(0.5)
    assert big.timeline.integral("sm", 0.0, 1.0) == pytest.approx(0.05)
    assert big.timeline.integral("collective", 0.0, 1.0) == pytest.approx(1.0)


TWO_GPUS = "INSERT INTO TARGET_INFO_GPU VALUES (0,'big','a',100,'GPU-big',{0},64),(1,'small','b',10,'GPU-small',{1},64)"


def test_each_process_has_its_own_ordinals(tmp_path: Path) -> None:
    """CUDA_VISIBLE_DEVICES gives both processes a GPU 0; cuDevice knows nothing of that."""
    path = export(
        tmp_path / "visible.sqlite",
        KERNELS,
        COPIES,
        GPUS,
        ORDINALS,
        *STRINGS,
        TWO_GPUS.format(0, 1),
        "INSERT INTO TARGET_INFO_CUDA_DEVICE VALUES (1,0,100,''),(0,0,200,'')",
        kernel(0, 1_000_000_000, 0, 5, pid=100),
        kernel(0, 2_000_000_000, 0, 5, pid=200),
        f"INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (0, 1000, 0, 7, 1, {process(200)})",
    )
    small, big = read_nsight(path)
    assert (small.device.entity.uuid, big.device.entity.uuid) == ("GPU-small", "GPU-big")
    assert (small.device.index, big.device.index) == ("0", "1")
    assert small.timeline.integral("busy", 0.0, 2.0) == pytest.approx(1.0)
    assert small.timeline.integral("sm", 0.0, 2.0) == pytest.approx(0.5)
    assert big.timeline.integral("busy", 0.0, 2.0) == pytest.approx(2.0)
    assert big.timeline.integral("pcie_receive", 0.0, 2.0) == pytest.approx(7)
    assert "pcie_receive" not in small.timeline.channels


def test_two_processes_on_one_gpu(tmp_path: Path) -> None:
    path = export(
        tmp_path / "shared.sqlite",
        KERNELS,
        COPIES,
        GPUS,
        ORDINALS,
        *STRINGS,
        TWO_GPUS.format(0, 1),
        "INSERT INTO TARGET_INFO_CUDA_DEVICE VALUES (0,0,100,''),(0,1,200,''),(0,0,300,'')",
        kernel(0, 1_000_000_000, 0, 50, pid=100),
        kernel(500_000_000, 1_500_000_000, 1, 50, pid=200),
        f"INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (0, 1000, 0, 7, 2, {process(300)})",  # it runs no kernel
    )
    (track,) = read_nsight(path)
    assert track.device.entity.uuid == "GPU-big"
    assert track.timeline.integral("busy", 0.0, 1.5) == pytest.approx(1.5)
    assert track.timeline.integral("sm", 0.0, 1.5) == pytest.approx(0.25 + 0.5 + 0.25)  # half, both, half
    assert track.timeline.integral("pcie_transmit", 0.0, 1.5) == pytest.approx(7)


def test_without_a_mapping_no_gpu_is_guessed(tmp_path: Path) -> None:
    made = (KERNELS, GPUS, *STRINGS, TWO_GPUS.format("NULL", "NULL"), kernel(0, 10**9, 0, 5), kernel(0, 10**9, 1, 5))
    tracks = read_nsight(export(tmp_path / "differ.sqlite", *made))
    assert [track.device.entity.uuid for track in tracks] == ["TRACE-gpu0", "TRACE-gpu1"]
    assert [track.timeline.integral("sm", 0.0, 1.0) for track in tracks] == [None, None]
    assert "which GPU" in tracks[0].notes[-1]
    tracks = read_nsight(export(tmp_path / "alike.sqlite", *made, "UPDATE TARGET_INFO_GPU SET smCount = 10"))
    assert [track.timeline.integral("sm", 0.0, 1.0) for track in tracks] == pytest.approx([0.5, 0.5])


def test_rows_without_a_time_or_size_are_left_out(tmp_path: Path) -> None:
    path = export(
        tmp_path / "null.sqlite",
        KERNELS,
        COPIES,
        *STRINGS,
        kernel(0, 10**9, 0, 5),
        kernel(0, 10**9, 0, 5).replace(f"({0},{10**9}", "(5,NULL"),
        "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (0, 1000, 0, NULL, 1, 0), (0, 1000, 0, 3, 1, 0)",
    )
    (track,) = read_nsight(path)
    assert track.timeline.integral("busy", 0.0, 1.0) == pytest.approx(1.0)
    assert track.timeline.integral("pcie_receive", 0.0, 1.0) == pytest.approx(3)


@pytest.mark.parametrize("schema", ["schema_perlmutter_2022.sql", "schema_perlmutter_2024.sql"])
def test_the_tables_of_two_versions(tmp_path: Path, schema: str) -> None:
    tables = capture(f"traces/{schema}")
    path = tmp_path / "real.sqlite"
    with sqlite3.connect(path) as db:
        db.executescript(tables.read_text())
        present = {str(name) for (name,) in db.execute("SELECT name FROM sqlite_master")}
        if "TARGET_INFO_GPU" not in present:  # the excerpt of 2022 has the kernels only
            for statement in (
                COPIES,
                STRINGS[0],
                GPUS,
                *(f"ALTER TABLE TARGET_INFO_GPU ADD {name} INT" for name in LIMITS),
            ):
                db.execute(statement)
        insert(db, "StringIds", id=1, value="ncclDevKernel_AllReduce")
        size = {"registersPerThread": 128, "dynamicSharedMemory": 150_000, "blockX": 256, "gridX": 150}
        insert(db, "CUPTI_ACTIVITY_KIND_KERNEL", deviceId=0, start=0, end=10**9, shortName=1, **size)
        insert(db, "CUPTI_ACTIVITY_KIND_MEMCPY", deviceId=0, start=0, end=10**6, bytes=5, copyKind=2)
        limits = dict(zip(LIMITS, (32, 65536, 167936, 8), strict=True))
        gpu = {"name": "A", "uuid": "abc", "smCount": 100, "cuDevice": 0, "maxWarpsPerSm": 64, **limits}
        insert(db, "TARGET_INFO_GPU", **gpu)
    db.close()
    (track,) = read_nsight(path)
    assert (track.device.entity.uuid, track.device.model) == ("GPU-abc", "A")
    # one block at once on an SM, for its shared memory: a full wave and half of one
    assert track.timeline.integral("sm", 0.0, 1.0) == pytest.approx(0.75)
    assert track.timeline.integral("sm_occupancy", 0.0, 1.0) == pytest.approx(0.75 * 8 / 64)
    assert track.timeline.integral("collective", 0.0, 1.0) == pytest.approx(1.0)
    assert track.timeline.integral("pcie_transmit", 0.0, 1.0) == pytest.approx(5)


def insert(db: sqlite3.Connection, table: str, **values: object) -> None:
    """A row; columns that must have a value and get none are 1 in sizes and 0 else."""
    columns = [row for row in db.execute(f"PRAGMA table_info({table})") if row[1] in values or row[3]]
    row = [values.get(c[1], int(c[1].startswith(("grid", "block")))) for c in columns]
    names = ",".join(f'"{c[1]}"' for c in columns)
    db.execute(f"INSERT INTO {table} ({names}) VALUES ({','.join('?' * len(row))})", row)


def test_without_the_table_of_gpus_sm_is_absent(tmp_path: Path) -> None:
    (track,) = read_nsight(export(tmp_path / "x.sqlite", KERNELS, *STRINGS, kernel(0, 10**9, 0, 5)))
    assert track.timeline.integral("busy", 0.0, 1.0) == pytest.approx(1.0)
    assert track.timeline.integral("sm", 0.0, 1.0) is None
    assert "how many SMs" in track.notes[0]


def test_broken_exports(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="has no table"):
        read_nsight(export(tmp_path / "other.sqlite", "CREATE TABLE x (y INT)"))
    with pytest.raises(TraceError, match="no kernel"):
        read_nsight(export(tmp_path / "none.sqlite", KERNELS))
    damaged = export(tmp_path / "damaged.sqlite", KERNELS, *STRINGS, *(kernel(n, n + 1, 0, 5) for n in range(3000)))
    damaged.write_bytes(damaged.read_bytes()[:20_000])
    with pytest.raises(TraceError, match="damaged"):
        read_nsight(damaged)
    with pytest.raises(TraceError, match=r"cannot be opened|damaged"):
        read_nsight(tmp_path / "nothing.sqlite")


def test_an_export_is_not_written_to(tmp_path: Path) -> None:
    path = export(tmp_path / "ro.sqlite", KERNELS, *STRINGS, kernel(0, 10**9, 0, 5))
    path.chmod(0o444)
    tmp_path.chmod(0o555)
    try:
        assert read_nsight(path)
        assert sorted(p.name for p in tmp_path.iterdir()) == ["ro.sqlite"]
    finally:
        tmp_path.chmod(0o755)
