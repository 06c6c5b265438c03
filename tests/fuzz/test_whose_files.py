"""What says whose a GPU is: control groups, mount tables, files of job folders, of any content and name."""

from __future__ import annotations

import os
from pathlib import Path

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.attribution.cgroup import from_mountinfo, parse
from exporter.attribution.holdings import AttributionError, Workload
from exporter.attribution.job_mapping import MOST_JOBS, MOST_TEXT, GpustatReader, read_index_files, read_job_files
from exporter.attribution.processes import ProcessAttributor
from exporter.attribution.slurm import MappingFolder, SlurmAttributor
from exporter.attribution.users import UserNames
from exporter.model import Device, Entity
from tests.fuzz.budget import fuzzed
from tests.fuzz.mutation import mutated_bytes, mutated_text
from tests.fuzz.refusal import may_refuse

UUID = "GPU-00000000-0000-0000-0000-000000000001"
DEVICES = (
    Device(Entity(UUID), "0"),
    Device(Entity(UUID, 3), "0", mig_uuid="MIG-00000000-0000-0000-0000-000000000002"),
)
ID, POD = "a" * 64, "01234567_89ab_cdef_0123_456789abcdef"
CGROUPS = f"""\
12:devices:/slurm_node/uid_1000/job_77/step_0/task_0
11:cpuset:/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{POD}.slice/cri-containerd-{ID}.scope
1:name=systemd:/system.slice/docker-{ID}.scope
0::/system.slice/node_slurmstepd.scope/job_s0123456789ABC/step_batch/user/task_0 (deleted)
"""
MOUNTS = f"""\
36 35 98:0 /var/lib/docker/containers/{ID}/hostname /etc/hostname rw,noatime master:1 - ext4 /dev/root rw
37 35 98:0 /var/lib/kubelet/pods/{POD.replace("_", "-")}/etc-hosts /etc/hosts rw - ext4 /dev/root rw
38 35 0:29 /../docker-{ID}.scope /sys/fs/cgroup ro - cgroup2 cgroup rw
"""
TOKENS = (
    *(
        "/",
        ":",
        "\n",
        " ",
        " - ",
        "//",
        "..",
        "job_",
        "step_",
        "uid_",
        "slurmstepd.scope",
        "kubepods",
        ".slice",
        ".scope",
    ),
    *(ID, POD, "user@1000.service", "docker-", "\0", "\x1b", "²", "\ud800", '"', "9" * 30),
)


@fuzzed()
@given(mutated_text(CGROUPS, TOKENS) | st.text(max_size=200), mutated_text(MOUNTS, TOKENS) | st.text(max_size=200))
def test_owners_are_made_of_safe_characters(cgroup: str, mounts: str) -> None:
    for owner in (parse(cgroup), from_mountinfo(mounts)):
        texts = (owner.job_id, owner.sluid, owner.step, owner.pod_uid, owner.container_id, owner.runtime)
        assert all(len(text) <= 64 and set(text) <= set("+-.0123456789" + ALPHABET) for text in texts), owner
        assert owner.uid is None or 0 <= owner.uid < 10**10


ALPHABET = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
STAT = b"9 (%s) R 1 9 9 0 -1 4194304 100 0 0 0 250 50 0 0 20 0 4 0 12345 " + b"0 " * 30
STATUS = "Name:\tpython\nUmask:\t0022\nState:\tR (running)\nUid:\t1000\t1000\t1000\t1000\nGid:\t1000\n"
contents = st.one_of(
    mutated_bytes(f"job_id=77\nuser=alice\naccount=physics\nsharing=mps\ngpu={UUID}\ngpu=MIG-{UUID}/3/0\n".encode()),
    mutated_bytes(b"77 1000\n78 0\n"),
    mutated_bytes(b"77\n78\n"),
    st.binary(max_size=100),
    st.just(b"1\n" * (MOST_JOBS + 1)),
    st.just(b"x" * 70_000),
)
names = st.sampled_from(
    [UUID, "0", "0.3", "0.", ".hidden", "77", "GPU-", "MIG-x", "0\n1", "\udcff", "\x1b[31m", "-rf", "a b"]
)


@fuzzed()
@given(st.dictionaries(names, contents, max_size=4), st.booleans())
def test_any_job_folder(tmp_path: Path, files: dict[str, bytes], with_pipe: bool) -> None:
    folder = tmp_path / "jobs"
    folder.mkdir(exist_ok=True)
    for each in folder.iterdir():
        each.unlink()
    for name, content in files.items():
        (folder / name).write_bytes(content)
    if with_pipe:
        os.mkfifo(folder / "1")
        (folder / "2").symlink_to("/dev/zero")
    for read in (read_job_files, GpustatReader(UserNames()), read_index_files):
        found = read(folder, DEVICES)
        for claim in found.claims:
            assert claim.entity in {device.entity for device in DEVICES}
            assert_bounded(claim.workload)
        assert len(found.claims) <= MOST_JOBS * len(files)
    SlurmAttributor([MappingFolder(folder, read_job_files)]).read(DEVICES)


@fuzzed()
@given(
    mutated_bytes(CGROUPS.encode()),
    mutated_bytes(MOUNTS.encode()) | st.none(),
    mutated_bytes(STATUS.encode()) | st.none(),
    mutated_bytes(STAT % b"python") | st.none(),
    mutated_bytes(STAT % b"kthreadd") | st.just(STAT % b"kthreadd"),
)
def test_any_process(
    tmp_path: Path, cgroup: bytes, mounts: bytes | None, status: bytes | None, stat: bytes | None, second: bytes
) -> None:
    files = {"2/stat": second, "9/cgroup": cgroup, "9/mountinfo": mounts, "9/status": status, "9/stat": stat}
    for name, content in files.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.unlink(missing_ok=True)
        if content is not None:
            path.write_bytes(content)
    with pytest.MonkeyPatch.context() as patch, may_refuse(AttributionError):
        patch.setattr(psutil, "PROCFS_PATH", str(tmp_path))
        for holding in ProcessAttributor(lambda: [(Entity(UUID), 9)], UserNames()).read(DEVICES).holdings:
            assert_bounded(holding.workload)


def assert_bounded(workload: Workload) -> None:
    assert all(len(text) <= MOST_TEXT and text.isprintable() for text in workload), workload
