"""Nsight Systems exports."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from exporter.sources.replay.nsight import read_nsight
from exporter.sources.replay.traces import TraceError

TRACES = Path(__file__).parents[4] / "shared" / "data" / "traces"
KERNELS = (
    'CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL ("start" INT, "end" INT, deviceId INT, shortName INT, '
    "registersPerThread INT, gridX INT, gridY INT, gridZ INT, blockX INT, blockY INT, blockZ INT, "
    "staticSharedMemory INT, dynamicSharedMemory INT)"
)
GPUS = (
    "CREATE TABLE TARGET_INFO_GPU (id INT, name TEXT, busLocation TEXT, smCount INT, uuid TEXT, cuDevice INT, "
    "maxWarpsPerSm INT)"
)


def export(path: Path, *statements: str) -> Path:
    with sqlite3.connect(path) as db:
        for statement in statements:
            db.execute(statement)
    db.close()
    return path


def kernel(start: int, end: int, device: int, blocks: int, name: int = 1) -> str:
    return f"INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES ({start},{end},{device},{name},16,{blocks},1,1,512,1,1,0,0)"


STRINGS = ("CREATE TABLE StringIds (id INT, value TEXT)", "INSERT INTO StringIds VALUES (1,'saxpy'),(2,'ncclKernel')")


def test_saxpy_on_two_of_108_sms() -> None:
    path = TRACES / "saxpy_a100_nsys2022.sqlite"
    if not path.exists():
        pytest.skip(f"the captures are not here: {path.name}")
    (track,) = read_nsight(path)
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


def test_without_the_table_of_gpus_sm_is_absent(tmp_path: Path) -> None:
    (track,) = read_nsight(export(tmp_path / "x.sqlite", KERNELS, *STRINGS, kernel(0, 10**9, 0, 5)))
    assert track.timeline.integral("busy", 0.0, 1.0) == pytest.approx(1.0)
    assert track.timeline.integral("sm", 0.0, 1.0) is None
    assert "how many SMs" in track.notes[0]


def test_broken_exports(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="without the table"):
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
