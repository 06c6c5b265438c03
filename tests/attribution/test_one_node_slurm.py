"""A real Slurm runs our prolog and epilog; its jobs are found by the files and by their processes."""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterator
from pathlib import Path

import pytest

from exporter.attribution.cgroup import parse
from exporter.attribution.holdings import Workload
from exporter.attribution.job_mapping import read_job_files
from exporter.attribution.processes import ProcessAttributor
from exporter.attribution.slurm import MappingFolder, SlurmAttributor
from exporter.model import Device, Entity
from tests.attribution.fake_driver import add_gpu
from tests.attribution.one_node_slurm import OneNodeSlurm, until, why_not

pytestmark = [pytest.mark.system, pytest.mark.skipif(bool(why_not()), reason=why_not())]
SCRIPTS = Path(__file__).parents[2] / "packaging" / "slurm"
UUIDS = ("GPU-aaaaaaaa-1111", "GPU-bbbbbbbb-2222", "GPU-cccccccc-3333")  # in the order of PCI addresses: NVML's
MINORS = (1, 2, 0)  # field case 54: /dev/nvidia0 is NVML's last
DEVICES = tuple(Device(Entity(uuid), str(index)) for index, uuid in enumerate(UUIDS))
USER = pwd.getpwuid(os.geteuid()).pw_name


def wrapped(root: Path, script: str) -> Path:
    """Slurm passes no environment of ours to a prolog."""
    path = root / script
    path.write_text(
        f"#!/bin/sh\nexport HONEST_GPU_SLURM_ROOT='{root}' HONEST_GPU_SLURM_JOBS='{root}/jobs'"
        f" HONEST_GPU_SLURM_SETTINGS='{root}/settings'\nexec '{SCRIPTS / script}'\n"
    )
    path.chmod(0o755)
    return path


@pytest.fixture
def slurm(tmp_path: Path) -> Iterator[OneNodeSlurm]:
    for number, (uuid, minor) in enumerate(zip(UUIDS, MINORS, strict=True)):
        add_gpu(tmp_path, f"0000:{number + 16:02x}:00.0", uuid, minor)
    (tmp_path / "settings").write_text("HONEST_GPU_SLURM_ORDER=minor\n")
    with OneNodeSlurm(tmp_path / "slurm", wrapped(tmp_path, "prolog"), wrapped(tmp_path, "epilog")) as slurm:
        yield slurm


def test_a_job_from_its_start_to_its_end(slurm: OneNodeSlurm, tmp_path: Path) -> None:
    running, stop = tmp_path / "running", tmp_path / "stop"
    script = (
        f"cat /proc/self/cgroup > '{tmp_path}/cgroup'; echo $$ $SLURM_JOB_ID > '{running}.new';"
        f" mv '{running}.new' '{running}'; while ! [ -e '{stop}' ]; do sleep 0.1; done"
    )
    attributor = SlurmAttributor((MappingFolder(tmp_path / "jobs", read_job_files),))
    job = slurm.job("--gres=gpu:2", "--account=physics", script=script)
    try:
        until(running.exists, "the job began")
        pid, number = running.read_text().split()
        whole = Workload(job_id=number, user=USER, account="physics")

        read = attributor.read(DEVICES)
        # Slurm's 0 and 1 are /dev/nvidia0 and /dev/nvidia1: NVML's 2 and 0
        assert {(each.entity.uuid, each.workload) for each in read.holdings} == {
            (UUIDS[2], whole),
            (UUIDS[0], whole),
        }
        assert read.unresolved == {}, slurm.log()

        if slurm.cgroups:
            owner = parse((tmp_path / "cgroup").read_text())
            assert (owner.job_id, owner.step, owner.uid) == (number, "0", os.geteuid())
            if Path("/proc/2/comm").read_text() == "kthreadd\n":
                entity = Entity(UUIDS[2])
                processes = ProcessAttributor(lambda: [(entity, int(pid))], str, attributor.job)
                assert [each.workload for each in processes.read(DEVICES).holdings] == [whole]
                assert processes.owner(int(pid), [Workload(job_id="0"), whole]) == whole
    finally:
        stop.touch()
        assert job.wait(60) == 0
    until(lambda: not attributor.read(DEVICES).holdings, "the epilog ran")
    assert os.listdir(tmp_path / "jobs") == []
