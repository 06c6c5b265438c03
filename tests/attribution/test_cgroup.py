"""Owners by control group: real files, every form that runtimes and Slurm write, and what must not be taken for one."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.attribution.cgroup import NOBODY, Owner, from_mountinfo, parse
from tests.data import HERE

DATA = HERE / "hosts" / "cgroup"
ID = "b15a5bdedd2e7645c3be271364324321b908314e4c77857bbfd32a041148c07f"
OTHER = "0" * 63 + "a"
POD = "90d81341-92de-11e7-8cf2-507b9d4141fa"
LOW_POD = POD.replace("-", "_")

CONTAINERS = json.loads((DATA / "containers_with_expected_ids.json").read_text())


@pytest.mark.parametrize("name", CONTAINERS)
def test_containers_of_the_captures(name: str) -> None:
    case = CONTAINERS[name]
    files = {path: "\n".join(lines) for path, lines in case["files"].items()}
    owner = parse(files.get("/proc/self/cgroup", "")) or from_mountinfo(files.get("/proc/self/mountinfo", ""))
    assert (owner.container_id or None, owner.pod_uid or None) == (case["containerId"], case["podId"])
    assert not owner.job


@pytest.mark.parametrize(
    ("name", "owner"),
    [
        ("ex3_slurm21_v1_full", Owner(job_id="748468", step="0", uid=1001)),
        ("fox_2025_v2", Owner(job_id="1392969", step="0")),
        ("slurm_pid_49276", Owner(job_id="4", step="0")),
        ("slurm_pid_43310", NOBODY),  # slurmstepd's waiting area, of no job
        ("slurm_pid_67998", NOBODY),
        ("garbage", NOBODY),
    ],
)
def test_slurm_captures(name: str, owner: Owner) -> None:
    assert parse((DATA / f"{name}.cgroup").read_text()) == owner


def test_a_hidden_control_group_is_found_by_its_mounts() -> None:
    files = CONTAINERS["gardener"]["files"]
    owner = from_mountinfo("\n".join(files["/proc/self/mountinfo"]))
    assert owner.pod_uid == "2ce976cd-53da-e3f8-603b-a5d94db656ec"
    assert owner.container_id == "980e7edf1f4efbcb4fbb9bebd332b29684810a1a333d31f80b596390e4467873"


@pytest.mark.parametrize(
    ("path", "owner"),
    [
        ("/slurm/uid_1001/job_7", Owner(job_id="7", uid=1001)),
        ("/slurm/uid_1001/job_7/step_batch/task_0", Owner(job_id="7", step="batch", uid=1001)),
        ("/slurm_node-3/uid_5/job_7/step_extern", Owner(job_id="7", step="extern", uid=5)),
        ("/system.slice/slurmstepd.scope/job_7/step_interactive/user/task_special", Owner("7", step="interactive")),
        ("/system.slice/node3_slurmstepd.scope/job_7/step_0+1/user/task_0", Owner("7", step="0+1")),
        ("/gpu.slice/slurmstepd.scope/job_7/step_4/slurm", Owner("7", step="4")),
        ("/system.slice/slurmstepd.scope/s5K1KKYAYG5D00/step_0/user/task_0", Owner(sluid="s5K1KKYAYG5D00", step="0")),
        ("/system.slice/slurmstepd.scope/sEKNKTV3WPV500", Owner(sluid="sEKNKTV3WPV500")),
        ("/system.slice/slurmstepd.scope/job_7/step_0/user/task_0 (deleted)", Owner("7", step="0")),
        ("/system.slice/slurmstepd.scope/sILOU00000000U/step_0", NOBODY),  # letters that base 32 leaves out
        ("/system.slice/slurmstepd.scope/system", NOBODY),
        ("/system.slice/slurmd.service", NOBODY),
        ("/job_7/step_0", NOBODY),  # anybody's name
        ("/slurm/uid_1001/job_x/step_0", NOBODY),
        ("/user.slice/user-5.slice/user@5.service/slurmstepd.scope/job_7/step_0", NOBODY),  # made by a user
    ],
)
def test_slurm_forms(path: str, owner: Owner) -> None:
    assert parse(f"0::{path}\n") == owner
    assert parse(f"11:freezer:{path}\n1:name=systemd:/system.slice/slurmd.service\n") == owner


@pytest.mark.parametrize(
    ("path", "pod", "runtime"),
    [
        (f"/docker/{ID}", "", "docker"),
        (f"/system.slice/docker-{ID}.scope", "", "docker"),
        (f"/system.slice/docker-{ID}.scope/init.scope", "", "docker"),
        (f"/mine/{ID}", "", ""),
        (f"/user.slice/user-5.slice/user@5.service/user.slice/docker-{ID}.scope", "", "docker"),
        (f"/user.slice/user-5.slice/user@5.service/user.slice/libpod-{ID}.scope/container", "", "podman"),
        (f"/machine.slice/libpod-{ID}.scope/container", "", "podman"),
        (f"/machine.slice/libpod-{ID}.scope (deleted)", "", "podman"),
        (f"/libpod_parent/libpod-{ID}", "", "podman"),
        (f"/libpod_parent/libpod-conmon-{ID}", "", "podman"),
        (f"/system.slice/nerdctl-{ID}.scope", "", "containerd"),
        (f"/kubepods/burstable/pod{POD}/{ID}", POD, ""),
        (f"/kubepods/pod{POD}/{ID}", POD, ""),
        (f"/kubelet/kubepods/besteffort/pod{POD}/{ID}", POD, ""),
        (f"/kubepods/pod{POD.replace('-', '')}/{ID}", POD.replace("-", ""), ""),  # a static pod
        (f"/kubepods/burstable/pod{POD}/crio-{ID}", POD, "cri-o"),
        (f"/kubepods.slice/kubepods-pod{LOW_POD}.slice/cri-containerd-{ID}.scope", POD, "containerd"),
        (f"/kubepods.slice/kubepods-besteffort-pod{LOW_POD}.slice/crio-{ID}.scope/container", POD, "cri-o"),
        (f"/kubepods.slice/kubepods-besteffort-pod{LOW_POD}.slice/crio-conmon-{ID}.scope", POD, "cri-o"),
        (f"/kubepods.slice/kubepods-burstable-pod{LOW_POD}.slice/docker-{ID}.scope", POD, "docker"),
        (f"/kubelet.slice/kubelet-kubepods-pod{LOW_POD}.slice/cri-containerd-{ID}.scope", POD, "containerd"),
        (
            f"/system.slice/containerd.service/kubepods-burstable-pod{LOW_POD}.slice:cri-containerd:{ID}",
            POD,
            "containerd",
        ),
        (f"/../../kubepods-besteffort-pod{LOW_POD}.slice/cri-containerd-{ID}.scope", POD, "containerd"),
        (f"/../cri-containerd-{ID}.scope", "", "containerd"),
        # a cluster inside of a container, and a container inside of a pod: the pod's own container counts
        (f"/docker/{OTHER}/kubelet/kubepods/pod{POD}/{ID}", POD, ""),
        (f"/kubepods/burstable/pod{POD}/{ID}/docker/{OTHER}", POD, ""),
        # a container inside of a container: the one that the host knows
        (f"/docker/{ID}/docker/{OTHER}", "", "docker"),
    ],
)
def test_container_forms(path: str, pod: str, runtime: str) -> None:
    assert parse(f"0::{path}\n") == Owner(pod_uid=pod, container_id=ID, runtime=runtime)


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/user.slice/user-1001.slice/session-157.scope",
        "/process_api/30bda449ccc162d79734a747d19c1bcc",
        f"/docker/{ID[:63]}",
        f"/docker/{ID}0",
        f"/pod{POD}/x",
        f"/user.slice/user@5.service/kubepods/pod{POD}/x",
        f"/system.slice/docker-{ID.upper()}.scope",
    ],
)
def test_nobody(path: str) -> None:
    assert parse(f"0::{path}\n") == NOBODY


def test_a_pod_without_a_container_is_still_a_pod() -> None:
    assert parse(f"0::/kubepods.slice/kubepods-pod{LOW_POD}.slice\n") == Owner(pod_uid=POD)


def test_a_job_in_a_pod_and_a_container_in_a_job_tell_both() -> None:
    in_pod = parse(f"0::/kubepods/pod{POD}/{ID}/system.slice/slurmstepd.scope/job_7/step_0/user/task_0\n")
    assert (in_pod.job_id, in_pod.pod_uid, in_pod.container_id) == ("7", POD, ID)
    in_job = parse(f"0::/system.slice/slurmstepd.scope/job_7/step_0/user/task_0/libpod-{ID}.scope\n")
    assert (in_job.job_id, in_job.container_id, in_job.runtime) == ("7", ID, "podman")


def test_the_line_that_tells_most_goes_first() -> None:
    owner = parse(
        "4:memory:/slurm/uid_5/job_7\n"
        "3:freezer:/slurm/uid_5/job_7/step_2\n"
        f"2:cpu:/docker/{OTHER}\n"
        f"1:name=systemd:/kubepods/pod{POD}/{ID}\n"
    )
    assert owner == Owner("7", step="2", uid=5, pod_uid=POD, container_id=ID)


def mounts(*roots_and_targets: tuple[str, str]) -> str:
    return "\n".join(f"1 2 253:1 {root} {target} rw - ext4 /dev/sda1 rw" for root, target in roots_and_targets)


def test_mounts() -> None:
    assert from_mountinfo(mounts((f"/docker/containers/{ID}/hosts", "/etc/hosts"))) == Owner(
        container_id=ID, runtime="docker"
    )
    podman = f"/var/lib/containers/storage/overlay-containers/{ID}/userdata/hostname"
    assert from_mountinfo(mounts((podman, "/etc/hostname"))) == Owner(container_id=ID, runtime="podman")
    # cri-o's are the pod's sandbox, not the container
    assert from_mountinfo(
        mounts((podman, "/etc/hostname"), (f"/var/lib/kubelet/pods/{POD}/etc-hosts", "/etc/hosts"))
    ) == Owner(pod_uid=POD)
    # a container that mounts the folder of another one is not the other one
    assert not from_mountinfo(mounts((f"/var/lib/docker/containers/{ID}/hosts", "/backup/hosts")))


line = st.text(alphabet=st.sampled_from("/:0123456789abcdefs_-.job step uid slurm kubepods pod scope\n "), max_size=120)


@given(st.one_of(st.text(), line, st.lists(line).map("\n".join)))
def test_never_raises(text: str) -> None:
    assert isinstance(parse(text), Owner)
    assert isinstance(parse(f"0::/{text}"), Owner)
    assert isinstance(from_mountinfo(text), Owner)


@given(st.integers(1, 10**9), st.sampled_from(["batch", "extern", "interactive", "0", "12"]), st.integers(0, 60000))
def test_any_job(job: int, step: str, uid: int) -> None:
    assert parse(f"5:freezer:/slurm/uid_{uid}/job_{job}/step_{step}\n") == Owner(str(job), step=step, uid=uid)
    assert parse(f"0::/system.slice/slurmstepd.scope/job_{job}/step_{step}/user/task_0\n") == Owner(str(job), step=step)


@given(st.uuids(), st.text("0123456789abcdef", min_size=64, max_size=64))
def test_any_pod(pod: object, container: str) -> None:
    low = str(pod).replace("-", "_")
    path = f"/kubepods.slice/kubepods-burstable-pod{low}.slice/crio-{container}.scope"
    assert parse(f"0::{path}") == Owner(pod_uid=str(pod), container_id=container, runtime="cri-o")
