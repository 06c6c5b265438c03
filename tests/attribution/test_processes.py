"""GPU processes and whose they are, over a made-up /proc and the real one."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

import psutil
import pytest

from exporter.attribution.holdings import AttributionError, Holding, Sharing, Workload
from exporter.attribution.processes import ProcessAttributor
from exporter.model import Device, Entity

A, B = Entity("GPU-a"), Entity("GPU-b")
INSTANCE = Entity("GPU-c", 7)
DEVICES = (Device(A, "0"), Device(B, "1"), Device(INSTANCE, "2"))
ID = "b15a5bdedd2e7645c3be271364324321b908314e4c77857bbfd32a041148c07f"
POD = "90d81341-92de-11e7-8cf2-507b9d4141fa"
JOB_4 = "/system.slice/slurmstepd.scope/job_4/step_0/user/task_0"
SESSION = "/user.slice/user-1001.slice/session-157.scope"
POD_PATH = f"/kubepods/burstable/pod{POD}/{ID}"


class Node:
    """A /proc of the host, and the processes that the driver names."""

    def __init__(self, proc: Path) -> None:
        """``proc``: where psutil looks too."""
        self.proc = proc
        self.listed: list[tuple[Entity, int]] = []
        self.jobs: dict[str, Workload] = {}
        self.pods: dict[tuple[str, str], Workload] = {}
        self.add(2, "/", uid=0, command="kthreadd")
        self.attributor = ProcessAttributor(
            lambda: self.listed,
            lambda uid: {0: "root", 1001: "ada", 1002: "bob"}.get(uid, str(uid)),
            self.jobs.get,
            lambda uid, container: self.pods.get((uid, container)),
        )

    def add(self, pid: int, cgroup: str, *entities: Entity, uid: int = 1001, command: str = "python") -> None:
        folder = self.proc / str(pid)
        folder.mkdir(parents=True)
        (folder / "stat").write_text(f"{pid} ({command}) S 1 {' '.join(['0'] * 48)}\n")
        (folder / "cmdline").write_text(f"{command}\0")
        (folder / "cgroup").write_text(f"0::{cgroup}\n")
        (folder / "status").write_text(f"Name:\t{command}\nPid:\t{pid}\nUid:\t{uid}\t0\t0\t0\n")
        self.listed += [(entity, pid) for entity in entities]

    def holders(self) -> list[tuple[Entity, Workload]]:
        return [(each.entity, each.workload) for each in self.attributor.read(DEVICES).holdings]

    def unresolved(self) -> Mapping[str, int]:
        return self.attributor.read(DEVICES).unresolved


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    monkeypatch.setattr(psutil, "PROCFS_PATH", str(tmp_path / "proc"))
    return Node(tmp_path / "proc")


def test_jobs_containers_and_users(node: Node) -> None:
    node.add(10, JOB_4, A)
    node.add(11, f"/system.slice/docker-{ID}.scope", B, uid=0)
    node.add(12, SESSION, INSTANCE)
    assert node.attributor.read(DEVICES).holdings == (
        Holding(A, Workload(job_id="4", user="ada"), Sharing.EXCLUSIVE),
        Holding(B, Workload(container=ID[:12]), Sharing.EXCLUSIVE),
        Holding(INSTANCE, Workload(user="ada"), Sharing.MIG),
    )


def test_several_processes_of_a_job_are_one_holder_and_several_jobs_share(node: Node) -> None:
    node.add(10, JOB_4, A, B)
    node.add(11, JOB_4, A)
    node.add(12, JOB_4.replace("job_4", "job_5"), B, uid=1002)
    read = node.attributor.read(DEVICES)
    assert [(each.entity, each.workload.job_id, each.sharing.value) for each in read.holdings] == [
        (A, "4", "exclusive"),
        (B, "4", "time_sliced"),
        (B, "5", "time_sliced"),
    ]


def test_what_the_prolog_wrote_completes_the_job(node: Node) -> None:
    whole = Workload(job_id="4", user="ada", account="physics")
    node.jobs |= {"4": whole, "s5K1KKYAYG5D00": whole}
    node.add(10, JOB_4, A)
    node.add(11, "/system.slice/slurmstepd.scope/s5K1KKYAYG5D00/step_0/user/task_0", B)
    assert node.holders() == [(A, whole), (B, whole)]


def test_without_the_prolog_a_job_is_named_by_its_sluid(node: Node) -> None:
    node.add(11, "/system.slice/slurmstepd.scope/s5K1KKYAYG5D00/step_0/user/task_0", B)
    assert node.holders() == [(B, Workload(job_id="s5K1KKYAYG5D00", user="ada"))]


def test_the_user_of_a_job_is_one_and_stays(node: Node) -> None:
    node.add(20, JOB_4, A)
    assert node.holders() == [(A, Workload(job_id="4", user="ada"))]
    node.add(10, JOB_4, A, uid=0)  # something of root's, in the same job
    assert node.holders() == [(A, Workload(job_id="4", user="ada"))]


def test_the_user_in_the_path_goes_before_the_processs(node: Node) -> None:
    node.add(10, "/slurm/uid_1002/job_4/step_0", A, uid=0)
    assert node.holders() == [(A, Workload(job_id="4", user="bob"))]
    assert [holding.uid for holding in node.attributor.read(DEVICES).holdings] == [1002]


def test_the_number_of_a_jobs_user_is_only_told_by_the_path(node: Node) -> None:
    """A process of the job may run as somebody else."""
    node.add(10, JOB_4, A, uid=0)
    assert [holding.uid for holding in node.attributor.read(DEVICES).holdings] == [None]


def test_pods(node: Node) -> None:
    node.add(10, POD_PATH, A)
    unnamed = node.attributor.read(DEVICES).holdings
    assert unnamed == (Holding(A, Workload(container=ID[:12]), Sharing.EXCLUSIVE, {"pod_uid": POD}),)
    named = Workload(namespace="ml", pod="train-0", container="main")
    node.pods[POD, ID] = named
    assert node.attributor.read(DEVICES).holdings == (Holding(A, named, Sharing.EXCLUSIVE),)


def test_a_container_with_a_hidden_control_group_is_found_by_its_mounts(node: Node) -> None:
    node.add(10, "/", A)
    mount = f"1 2 253:1 /var/lib/docker/containers/{ID}/hosts /etc/hosts rw - ext4 /dev/sda1 rw\n"
    (node.proc / "10" / "mountinfo").write_text(mount)
    assert node.holders() == [(A, Workload(container=ID[:12]))]


def test_mps(node: Node) -> None:
    node.add(10, "/system.slice/mps.service", A, uid=0, command="nvidia-cuda-mps")
    node.add(11, JOB_4, A)
    node.add(12, JOB_4, B)
    read = node.attributor.read(DEVICES)
    assert [(each.entity, each.workload.job_id, each.sharing.value) for each in read.holdings] == [
        (A, "4", "mps"),
        (B, "4", "exclusive"),
    ]


def test_a_jobs_own_mps_server_is_the_jobs(node: Node) -> None:
    node.add(10, JOB_4, A, command="nvidia-cuda-mps")
    assert node.holders() == [(A, Workload(job_id="4", user="ada"))]


def test_what_cannot_be_resolved_is_counted(node: Node) -> None:
    node.listed += [(A, 99), (A, 98), (Entity("GPU-gone"), 2)]
    node.add(10, SESSION, A)
    (node.proc / "10" / "status").write_text("garbage")
    node.add(11, SESSION, A)
    (node.proc / "11" / "cgroup").unlink()
    (node.proc / "11" / "cgroup").mkdir()
    read = node.attributor.read(DEVICES)
    assert read.holdings == ()
    assert read.unresolved == {
        "process_not_visible": 2,
        "unknown_device": 1,
        "process_without_user": 1,
        "process_unreadable": 1,
    }


@pytest.mark.parametrize("command", ["Uid:\t0\t0\t0", "a) S 1 (b"])
def test_a_process_chooses_its_name_and_not_its_user(node: Node, command: str) -> None:
    node.add(10, SESSION, A, command=command)
    assert node.holders() == [(A, Workload(user="ada"))]
    assert node.attributor.command(10) == command


def test_a_long_command_line_does_not_lengthen_the_name(node: Node) -> None:
    node.add(10, SESSION, A, command="kernel_keeps_15")
    (node.proc / "10" / "cmdline").write_text("/opt/kernel_keeps_15_and_no_more\0--epochs\0")
    node.holders()
    assert node.attributor.command(10) == "kernel_keeps_15"


def test_process_that_comes_and_goes(node: Node) -> None:
    node.add(10, JOB_4, A)
    assert len(node.holders()) == 1
    node.listed.clear()
    assert node.holders() == []
    assert node.unresolved() == {}


def test_names_of_processes(node: Node) -> None:
    node.add(10, JOB_4, A, command="train")
    node.add(11, JOB_4, Entity("GPU-gone"), command="other")
    assert node.attributor.command(10) == ""  # not looked at yet
    node.holders()
    assert [node.attributor.command(pid) for pid in (10, 11, 99)] == ["train", "", ""]
    (node.proc / "2" / "stat").unlink()  # the ids are of another namespace now, and so are the names
    with pytest.raises(AttributionError):
        node.holders()
    assert node.attributor.command(10) == ""


@pytest.mark.parametrize("command", [None, "bash"])
def test_without_the_hosts_process_ids_nothing_is_claimed(node: Node, command: str | None) -> None:
    """Field case 62. A process id of the host may be another process here: nothing is looked up."""
    node.add(10, JOB_4, A)
    shutil.rmtree(node.proc / "2")
    if command is not None:
        node.add(2, "/", command=command)
    with pytest.raises(AttributionError, match="not the host's") as caught:
        node.attributor.read(DEVICES)
    assert "hostPID: true" in caught.value.remedy
    assert "--pid=host" in caught.value.remedy


class TestOwner:
    """Which holder of a device a process belongs to."""

    JOB = Workload(job_id="4", user="ada", account="physics")
    OTHER = Workload(job_id="5", user="bob")
    POD = Workload(namespace="ml", pod="train-0", container="main")

    def test_by_job_whatever_else_is_known_of_it(self, node: Node) -> None:
        node.add(10, JOB_4, A)
        node.holders()
        assert node.attributor.owner(10, [self.OTHER, self.JOB]) == self.JOB
        assert node.attributor.owner(10, [self.OTHER]) is None
        assert node.attributor.owner(10, []) is None

    def test_by_pod(self, node: Node) -> None:
        node.add(10, POD_PATH, A)
        node.pods["x", "y"] = self.POD
        node.holders()
        assert node.attributor.owner(10, [self.OTHER, self.POD]) is None  # which of them cannot be told
        assert node.attributor.owner(10, [self.POD]) == self.POD
        node.pods[POD, ID] = self.POD
        node.holders()
        assert node.attributor.owner(10, [self.OTHER, self.POD]) == self.POD
        assert node.attributor.owner(10, [self.OTHER]) is None

    def test_by_pod_whose_container_is_not_known(self, node: Node) -> None:
        """The pod's only container on this device, where there is one."""
        side = self.POD._replace(container="side")
        node.add(10, POD_PATH, A)
        node.pods[POD, ID] = self.POD._replace(container="")
        node.holders()
        assert node.attributor.owner(10, [self.OTHER, self.POD]) == self.POD
        assert node.attributor.owner(10, [self.OTHER, self.POD, side]) is None
        assert node.attributor.owner(10, [self.OTHER]) is None

    def test_one_that_does_not_tell_is_the_only_holders(self, node: Node) -> None:
        node.add(10, SESSION, A)
        node.holders()
        for pid in (10, 99):
            assert node.attributor.owner(pid, [self.JOB]) == self.JOB
            assert node.attributor.owner(pid, [self.JOB, self.OTHER]) is None

    def test_by_user_and_container_where_that_is_all_there_is(self, node: Node) -> None:
        node.add(10, SESSION, A)
        node.add(11, f"/docker/{ID}", A)
        holders = [who for _, who in node.holders()]
        assert [node.attributor.owner(pid, holders) for pid in (10, 11)] == [
            Workload(user="ada"),
            Workload(container=ID[:12]),
        ]


@pytest.mark.skipif(
    not Path("/proc/2/comm").exists() or Path("/proc/2/comm").read_text() != "kthreadd\n",
    reason="the host's processes are not visible here",
)
def test_this_very_process() -> None:
    attributor = ProcessAttributor(lambda: [(A, os.getpid())], str)
    read = attributor.read(DEVICES)
    assert read.unresolved == {}
    assert len(read.holdings) == 1
    who = read.holdings[0].workload
    assert who.user == str(os.getuid()) or who.container or who.job_id
