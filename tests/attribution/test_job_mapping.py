"""Job mapping folders: dcgm-exporter's, jobstats' and our own."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.attribution.holdings import AttributionError, Claim, Workload, holdings
from exporter.attribution.job_mapping import (
    MOST_JOBS,
    Found,
    GpustatReader,
    MappingReader,
    read_index_files,
    read_job_files,
)
from exporter.model import Device, Entity

A, B, CUT = "GPU-aaaaaaaa-0000", "GPU-bbbbbbbb-0000", "GPU-cccccccc-0000"
MIG = "MIG-dddddddd-0000"
# the driver's index is not the minor number: field case 54
DEVICES = (
    Device(Entity(A), "0", minor="4"),
    Device(Entity(B), "6", minor="0"),
    Device(Entity(CUT), "2", minor="2", mig_enabled=True),
    Device(Entity(CUT, 7), "2", minor="2", mig_uuid=MIG),
)
gpustat = GpustatReader({1001: "ada"}.__getitem__)
READERS = (read_index_files, gpustat, read_job_files)


def kinds(found: Found) -> dict[str, int]:
    return dict(Counter(oddity.kind for oddity in found.oddities))


def job(number: str, user: str = "", account: str = "") -> Workload:
    return Workload(job_id=number, user=user, account=account)


class TestIndexFiles:
    def test_gpus_and_instances_by_the_drivers_index(self, tmp_path: Path) -> None:
        (tmp_path / "0").write_text("12\n")
        (tmp_path / "6").write_text("13")
        (tmp_path / "2.7").write_text("14\n")
        found = read_index_files(tmp_path, DEVICES)
        assert found.claims == [
            Claim(Entity(A), job("12")),
            Claim(Entity(CUT, 7), job("14")),
            Claim(Entity(B), job("13")),
        ]
        assert not found.oddities

    def test_shared_by_several_jobs(self, tmp_path: Path) -> None:
        (tmp_path / "0").write_text("12\n\n  13  \n")
        claims = read_index_files(tmp_path, DEVICES).claims
        assert [claim.workload.job_id for claim in claims] == ["12", "13"]

    def test_job_ids_of_other_schedulers(self, tmp_path: Path) -> None:
        (tmp_path / "0").write_text("123_4\n5[6].server\n7+1\nteam/run-8\n")
        claims = read_index_files(tmp_path, DEVICES).claims
        assert [claim.workload.job_id for claim in claims] == ["123_4", "5[6].server", "7+1", "team/run-8"]

    def test_an_empty_file_is_a_gpu_without_a_job(self, tmp_path: Path) -> None:
        (tmp_path / "0").touch()
        (tmp_path / "5").touch()
        assert read_index_files(tmp_path, DEVICES) == Found([], [])

    def test_a_gpu_that_is_not_here(self, tmp_path: Path) -> None:
        (tmp_path / "9").write_text("12\n13\n")
        (tmp_path / "2.1").write_text("12\n")
        found = read_index_files(tmp_path, DEVICES)
        assert (list(found.claims), kinds(found)) == ([], {"unknown_device": 2})
        assert str(tmp_path / "9") in found.oddities[1].text

    def test_lines_that_are_no_job_id(self, tmp_path: Path) -> None:
        (tmp_path / "0").write_bytes(b"12 13\n\xff\xfe\n\x1b[2J\n" + b"9" * 200 + b"\n14\n")
        found = read_index_files(tmp_path, DEVICES)
        assert [claim.workload.job_id for claim in found.claims] == ["14"]
        assert kinds(found) == {"bad_line": 4}

    @pytest.mark.parametrize("name", ["readme.txt", "00", "0.7.1", "-1", "0.", ".0", "GPU-x", "12345"])
    def test_other_files_are_passed_over(self, tmp_path: Path, name: str) -> None:
        (tmp_path / name).write_text("12\n")
        assert read_index_files(tmp_path, DEVICES) == Found([], [])


class TestGpustat:
    def test_by_uuid(self, tmp_path: Path) -> None:
        (tmp_path / A).write_text("12 1001\n")
        (tmp_path / MIG).write_text("13 1001")
        found = gpustat(tmp_path, DEVICES)
        assert found.claims == [
            Claim(Entity(A), job("12", "ada"), uid=1001),
            Claim(Entity(CUT, 7), job("13", "ada"), uid=1001),
        ]

    def test_numbers_are_another_order_and_passed_over(self, tmp_path: Path) -> None:
        (tmp_path / "0").write_text("12 1001\n")
        assert gpustat(tmp_path, DEVICES) == Found([], [])

    def test_what_cannot_be_used(self, tmp_path: Path) -> None:
        (tmp_path / A).write_text("12\n12 ada\n12 1001 3\n-1 1001\n13 1001\n")
        (tmp_path / "GPU-elsewhere").write_text("12 1001\n")
        found = gpustat(tmp_path, DEVICES)
        assert [claim.workload for claim in found.claims] == [job("13", "ada")]
        assert kinds(found) == {"bad_line": 4, "unknown_device": 1}


class TestJobFiles:
    def test_one_file_names_all_gpus_of_a_job(self, tmp_path: Path) -> None:
        (tmp_path / "12").write_text(
            f"job_id=12\nsluid=s5K1KKYAYG5D00\nuser=ada\naccount=physics\nfuture=x\ngpu={A}\ngpu={MIG}\n"
        )
        found = read_job_files(tmp_path, DEVICES)
        who = job("12", "ada", "physics")
        assert found.claims == [Claim(Entity(A), who), Claim(Entity(CUT, 7), who)]
        assert dict(found.jobs) == {"12": who, "s5K1KKYAYG5D00": who}
        assert not found.oddities

    def test_instances_as_older_drivers_name_them(self, tmp_path: Path) -> None:
        (tmp_path / "12").write_text(f"job_id=12\ngpu=MIG-{CUT}/7/0\ngpu=MIG-{CUT}/8/0\n")
        found = read_job_files(tmp_path, DEVICES)
        assert [claim.entity for claim in found.claims] == [Entity(CUT, 7)]
        assert kinds(found) == {"unknown_device": 1}

    def test_several_jobs_on_a_gpu_and_mps(self, tmp_path: Path) -> None:
        (tmp_path / "12").write_text(f"job_id=12\nsharing=mps\ngpu={A}\n")
        (tmp_path / "13").write_text(f"job_id=13\ngpu={A}\n")
        assert read_job_files(tmp_path, DEVICES).claims == [
            Claim(Entity(A), job("12"), mps=True),
            Claim(Entity(A), job("13")),
        ]

    @pytest.mark.parametrize(
        ("line", "uid"),
        [("uid=1001", 1001), ("uid=0", 0), ("", None), ("uid=", None), ("uid=ada", None), ("uid=-1", None)],
    )
    def test_the_users_number_as_far_as_it_is_told(self, tmp_path: Path, line: str, uid: int | None) -> None:
        (tmp_path / "12").write_text(f"job_id=12\n{line}\ngpu={A}\n")
        found = read_job_files(tmp_path, DEVICES)
        assert found.claims == [Claim(Entity(A), job("12"), uid=uid)]
        (held,) = holdings(found.claims)
        assert held.uid == uid

    def test_what_cannot_be_used(self, tmp_path: Path) -> None:
        (tmp_path / "12").write_text("job_id=12\nuser=\ngpu=index:3\n")
        (tmp_path / "13").write_text(f"user=ada\ngpu={A}\n")
        (tmp_path / "14").write_text(f"job_id=1 4\ngpu={A}\n")
        found = read_job_files(tmp_path, DEVICES)
        assert list(found.claims) == []
        assert kinds(found) == {"unknown_device": 1, "bad_file": 2}
        assert "'index:3'" in found.oddities[0].text
        assert dict(found.jobs) == {"12": job("12")}

    def test_a_file_that_is_still_being_written_is_not_looked_at(self, tmp_path: Path) -> None:
        (tmp_path / ".12.99").write_text(f"job_id=12\ngpu={A}\n")
        assert read_job_files(tmp_path, DEVICES) == Found([], [], [])


@pytest.mark.parametrize("read", READERS)
class TestEveryForm:
    """``0`` or the UUID, and what is inside, is right in each form's own way."""

    @pytest.fixture
    def name(self, read: MappingReader) -> str:
        return {read_index_files: "0", gpustat: A, read_job_files: "12"}[read]

    @pytest.fixture
    def text(self, read: MappingReader) -> str:
        return {read_index_files: "12\n", gpustat: "12 1001\n", read_job_files: f"job_id=12\ngpu={A}\n"}[read]

    def test_right(self, tmp_path: Path, read: MappingReader, name: str, text: str) -> None:
        (tmp_path / name).write_text(text)
        assert [claim.entity for claim in read(tmp_path, DEVICES).claims] == [Entity(A)]

    def test_no_folder(self, tmp_path: Path, read: MappingReader) -> None:
        with pytest.raises(AttributionError, match=r"none.* cannot be read: No such file") as caught:
            read(tmp_path / "none", DEVICES)
        assert "prolog" in caught.value.remedy

    def test_too_large(self, tmp_path: Path, read: MappingReader, name: str, text: str) -> None:
        (tmp_path / name).write_text(text + "x" * 100_000)
        found = read(tmp_path, DEVICES)
        assert (list(found.claims), kinds(found)) == ([], {"too_large": 1})

    def test_too_many_jobs(self, tmp_path: Path, read: MappingReader, name: str, text: str) -> None:
        (tmp_path / name).write_text(text * (MOST_JOBS + 1))
        found = read(tmp_path, DEVICES)
        assert (list(found.claims), kinds(found)) == ([], {"too_large": 1})

    def test_too_many_files(self, tmp_path: Path, read: MappingReader, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("exporter.attribution.job_mapping.MOST_FILES", 3)
        for number in range(3):
            (tmp_path / f"x{number}").touch()
        read(tmp_path, DEVICES)
        (tmp_path / "x3").touch()
        with pytest.raises(AttributionError, match="more than 3 files"):
            read(tmp_path, DEVICES)

    def test_no_plain_file(self, tmp_path: Path, read: MappingReader, name: str) -> None:
        os.mkfifo(tmp_path / name)
        found = read(tmp_path, DEVICES)
        assert (list(found.claims), kinds(found)) == ([], {"unreadable": 1})

    def test_folders_are_passed_over(self, tmp_path: Path, read: MappingReader, name: str) -> None:
        (tmp_path / name).mkdir()
        found = read(tmp_path, DEVICES)
        assert (list(found.claims), kinds(found)) == ([], {})

    def test_unreadable(
        self, tmp_path: Path, read: MappingReader, name: str, text: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / name).write_text(text)

        def refuse(path: Path, flags: int) -> int:  # root may read everything, so no mode says it
            raise PermissionError(13, "Permission denied", path)

        monkeypatch.setattr("exporter.attribution.small_files.os.open", refuse)
        found = read(tmp_path, DEVICES)
        assert (list(found.claims), kinds(found)) == ([], {"unreadable": 1})
        assert "Permission denied" in found.oddities[0].text

    def test_a_link_to_nowhere_is_a_job_that_has_ended(self, tmp_path: Path, read: MappingReader, name: str) -> None:
        (tmp_path / name).symlink_to(tmp_path / "gone")
        found = read(tmp_path, DEVICES)
        assert (list(found.claims), kinds(found)) == ([], {})


@given(data=st.binary(max_size=300), name=st.sampled_from(["0", "2.7", A, MIG, "12", "job"]))
def test_never_raises(tmp_path_factory: pytest.TempPathFactory, data: bytes, name: str) -> None:
    folder = tmp_path_factory.mktemp("jobs")
    (folder / name).write_bytes(data)
    readers: tuple[Callable[[Path, tuple[Device, ...]], Found], ...] = (
        read_index_files,
        GpustatReader(str),
        read_job_files,
    )
    for read in readers:
        for claim in read(folder, DEVICES).claims:
            assert claim.workload.job_id.isprintable()
