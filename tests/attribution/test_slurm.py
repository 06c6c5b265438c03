"""The attributor over job mapping folders."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from exporter.attribution.holdings import AttributionError, Holding, Sharing, Workload
from exporter.attribution.job_mapping import GpustatReader, read_index_files, read_job_files
from exporter.attribution.slurm import MappingFolder, SlurmAttributor
from exporter.model import Device, Entity

A, B, C = (Entity(f"GPU-{letter}") for letter in "abc")
INSTANCE = Entity("GPU-c", 7)
DEVICES = (Device(A, "0"), Device(B, "1"), Device(C, "2"), Device(INSTANCE, "2"))


class Folders:
    def __init__(self, root: Path) -> None:
        self.ours, self.gpustat, self.index = (root / name for name in ("ours", "gpustat", "index"))
        for folder in (self.ours, self.gpustat, self.index):
            folder.mkdir()
        self.attributor = SlurmAttributor(
            (
                MappingFolder(self.ours, read_job_files),
                MappingFolder(self.gpustat, GpustatReader(lambda uid: f"user{uid}")),
                MappingFolder(self.index, read_index_files),
            )
        )


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    return Folders(tmp_path)


def test_the_first_folder_that_names_a_device_decides_about_it(folders: Folders) -> None:
    (folders.ours / "12").write_text("job_id=12\nuser=ada\naccount=physics\ngpu=GPU-a\n")
    for uuid in ("GPU-a", "GPU-b"):
        (folders.gpustat / uuid).write_text("13 5\n")
    for name in ("0", "1", "2.7"):
        (folders.index / name).write_text("14\n")
    read = folders.attributor.read(DEVICES)
    assert (read.source, folders.attributor.name) == ("slurm", "slurm")
    assert read.holdings == (
        Holding(A, Workload(job_id="12", user="ada", account="physics"), Sharing.EXCLUSIVE),
        Holding(B, Workload(job_id="13", user="user5"), Sharing.EXCLUSIVE, uid=5),
        Holding(INSTANCE, Workload(job_id="14"), Sharing.MIG),
    )
    assert not read.unresolved


def test_sharing(folders: Folders) -> None:
    for number, sharing in (("12", ""), ("13", ""), ("14", ""), ("15", "mps")):
        gpu = "GPU-a" if number in ("12", "13") else "GPU-b"
        (folders.ours / number).write_text(f"job_id={number}\nsharing={sharing}\ngpu={gpu}\n")
    (folders.index / "2.7").write_text("16\n17\n")
    read = folders.attributor.read(DEVICES)
    assert [(each.entity, each.workload.job_id, each.sharing.value) for each in read.holdings] == [
        (A, "12", "time_sliced"),
        (A, "13", "time_sliced"),
        (B, "14", "mps"),
        (B, "15", "mps"),
        (INSTANCE, "16", "mig"),
        (INSTANCE, "17", "mig"),
    ]


def test_all_holders_in_the_same_order_each_time(folders: Folders) -> None:
    (folders.index / "0").write_text("9\n10\n9\n")
    first = folders.attributor.read(DEVICES)
    (folders.index / "0").write_text("10\n9\n")
    assert folders.attributor.read(DEVICES) == first
    assert [each.workload.job_id for each in first.holdings] == ["10", "9"]


def test_a_job_that_ends_is_gone_with_its_file(folders: Folders) -> None:
    (folders.ours / "12").write_text("job_id=12\nsluid=s5K1KKYAYG5D00\nuser=ada\ngpu=GPU-a\n")
    assert folders.attributor.read(DEVICES).holdings
    known = Workload(job_id="12", user="ada")
    assert folders.attributor.job("12") == folders.attributor.job("s5K1KKYAYG5D00") == known
    (folders.ours / "12").unlink()
    assert folders.attributor.read(DEVICES).holdings == ()
    assert folders.attributor.job("12") is None


def test_a_folder_that_is_missing_does_not_hide_the_others(folders: Folders) -> None:
    folders.ours.rmdir()
    (folders.index / "0").write_text("14\n")
    read = folders.attributor.read(DEVICES)
    assert [each.entity for each in read.holdings] == [A]
    assert read.unresolved == {"folder_unreadable": 1}


def test_without_any_folder_nothing_is_known_rather_than_nobody_there(folders: Folders) -> None:
    for folder in (folders.ours, folders.gpustat, folders.index):
        folder.rmdir()
    with pytest.raises(AttributionError, match="ours cannot be read: No such file"):
        folders.attributor.read(DEVICES)


def test_oddities_are_counted_each_time_and_said_once(folders: Folders, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    (folders.index / "9").write_text("14\n")
    (folders.index / "0").write_text("a b\n")
    for _ in range(3):
        assert folders.attributor.read(DEVICES).unresolved == {"unknown_device": 1, "bad_line": 1}
    assert len(caplog.messages) == 2
    (folders.index / "9").unlink()
    assert folders.attributor.read(DEVICES).unresolved == {"bad_line": 1}
    (folders.index / "9").write_text("14\n")  # it came back: said again
    folders.attributor.read(DEVICES)
    assert len(caplog.messages) == 3


def test_the_log_is_not_flooded(folders: Folders, caplog: pytest.LogCaptureFixture) -> None:
    for number in range(100, 200):
        (folders.index / str(number)).write_text("14\n")
    assert folders.attributor.read(DEVICES).unresolved == {"unknown_device": 100}
    assert len(caplog.messages) == 21
    assert "80 more" in caplog.messages[-1]
