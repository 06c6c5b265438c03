"""Who a process belongs to, told by its control group: a Slurm job, a pod, a container. Pure text, no I/O.

Forms, and where they are from:
- Slurm, cgroup v1: ``/slurm[_NODE]/uid_U/job_J/step_S/task_T``
- Slurm, cgroup v2: ``.../[NODE_]slurmstepd.scope/job_J/step_S/user/task_T``; from 26.05 on the job's directory is
  named by its SLUID (``s`` and 13 characters) unless cgroup.conf says CgroupJobIdPaths=yes (cgroup_v2.html)
- kubelet, systemd driver: ``kubepods[-QOS]-podUID.slice``, the UID's dashes as underscores; cgroupfs driver: ``podUID``
- containers: ``docker-ID.scope``, ``cri-containerd-ID.scope``, ``crio-ID.scope``, ``libpod-ID.scope``, the bare ID,
  and containerd's ``SLICE:cri-containerd:ID`` where its two drivers are mixed up
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_SLURM_ROOT = re.compile(r"slurm(?:_.+)?|(?:.+_)?slurmstepd\.scope")
_SLURM_UID = re.compile(r"uid_([0-9]{1,10})")
_SLURM_JOB = re.compile(r"job_([0-9]{1,10})")
_SLUID = re.compile(r"s[0-9A-HJKMNP-TV-Z]{13}")  # Crockford's base 32, upper case: src/common/sluid.c
_SLURM_STEP = re.compile(r"step_([0-9a-z+.]{1,24})")
_USER_MANAGER = re.compile(r"user@[0-9]+\.service")

_UID = r"([0-9a-f]{8}(?:[-_]?[0-9a-f]{4}){3}[-_]?[0-9a-f]{12})"  # a static pod's is a hash without dashes
_POD_SLICE = re.compile(rf"(?:.+-)?kubepods(?:-[a-z]+)?-pod{_UID}\.slice")
_POD_FOLDER = re.compile(rf"pod{_UID}")
_KUBEPODS = "kubepods"

_CONTAINER = re.compile(r"(?:([a-z]+(?:-[a-z]+)*)-)?([0-9a-f]{64})(?:\.scope)?")
_ECS_CONTAINER = re.compile(r"[0-9a-f]{32}-[0-9]{1,20}")
_MIXED_DRIVERS = re.compile(r"(.+):([a-z-]+):([0-9a-f]{64})")
_RUNTIMES = {
    "docker": "docker",
    "containerd": "containerd",
    "cri-containerd": "containerd",
    "nerdctl": "containerd",
    "crio": "cri-o",
    "crio-conmon": "cri-o",
    "libpod": "podman",
    "libpod-conmon": "podman",
    "libpod-payload": "podman",
}
_PARENTS = {"docker": "docker", "libpod_parent": "podman"}

_NAME_FILES = frozenset({"/etc/hostname", "/etc/hosts", "/etc/resolv.conf"})
_DOCKER_FILES = re.compile(r"(?:.*/)?containers/([0-9a-f]{64})/[a-z.]+")
_PODMAN_FILES = re.compile(r"(?:.*/)?overlay-containers/([0-9a-f]{64})/userdata/[a-z.]+")
_KUBELET_FILES = re.compile(rf"(?:.*/)?pods/{_UID}/etc-hosts")


@dataclass(frozen=True, slots=True)
class Owner:
    """What a control group tells; empty: it does not tell."""

    job_id: str = ""  # Slurm's number
    sluid: str = ""  # Slurm's other name of a job, in place of the number
    step: str = ""  # 0, batch, extern, interactive, ...
    uid: int | None = None  # the job's user; in paths of cgroup v1 only
    pod_uid: str = ""
    container_id: str = ""
    runtime: str = ""  # docker, containerd, cri-o, podman; empty for a bare id

    @property
    def job(self) -> str:
        """Slurm's name of the job: its number where it is known, else its SLUID."""
        return self.job_id or self.sluid

    def __bool__(self) -> bool:
        return bool(self.job or self.pod_uid or self.container_id)


NOBODY = Owner()


def parse(text: str) -> Owner:
    """The owner named by the text of ``/proc/PID/cgroup``; never raises.

    The lines of cgroup v1 are one a controller, and often only some of them are below the job: what any of them
    tells counts, and the one that tells most goes first.
    """
    return _merged([_owner(path) for path in _paths(text)])


def from_mountinfo(text: str) -> Owner:
    """The owner named by the text of ``/proc/PID/mountinfo``; never raises.

    For containers with a cgroup namespace of their own, whose ``/proc/PID/cgroup`` is no more than ``0::/``. The
    runtime mounts its own files over those that name the host. Kubernetes' are those of the pod's sandbox, whose id is
    not the container's: one that names the pod goes first.
    """
    owners: list[Owner] = []
    for line in text.splitlines():
        before, _, after = line.partition(" - ")
        fields = before.split(" ")
        if len(fields) < 6:
            continue
        root, target = fields[3], fields[4]
        if after.startswith("cgroup"):
            owners.append(_owner(root))
        elif target in _NAME_FILES:
            owners.append(_owner_of_file(root))
    return _merged(owners)


def _merged(owners: Sequence[Owner]) -> Owner:
    if not owners:
        return NOBODY
    job = max(owners, key=lambda owner: (bool(owner.job), bool(owner.step)))
    held = max(owners, key=lambda owner: (bool(owner.pod_uid), bool(owner.container_id)))
    return Owner(job.job_id, job.sluid, job.step, job.uid, held.pod_uid, held.container_id, held.runtime)


def _paths(text: str) -> Iterator[str]:
    for line in text.splitlines():
        parts = line.split(":", 2)  # hierarchy, controllers, path; the path may have colons
        if len(parts) == 3 and parts[2].startswith("/"):
            yield parts[2]


def _owner(path: str) -> Owner:
    segments = list(_segments(path.removesuffix(" (deleted)")))  # the group is gone, its last process not quite
    # What lies below a user's own systemd is named by the user: nobody's job or pod, whatever it is called.
    system = segments[: next((i for i, name in enumerate(segments) if _USER_MANAGER.fullmatch(name)), None)]
    job_id, sluid, step, uid = _slurm(system)
    pod, pod_uid = _pod(system)
    container_id, runtime = _container(segments, pod)
    return Owner(job_id, sluid, step, uid, pod_uid, container_id, runtime)


def _segments(path: str) -> Iterator[str]:
    for segment in path.split("/"):
        mixed = _MIXED_DRIVERS.fullmatch(segment)
        if mixed:
            yield mixed[1]
            yield f"{mixed[2]}-{mixed[3]}.scope"
        elif segment:
            yield segment


def _slurm(segments: Sequence[str]) -> tuple[str, str, str, int | None]:
    """Job id, SLUID, step, user id."""
    for number, segment in enumerate(segments):
        if not _SLURM_ROOT.fullmatch(segment):
            continue
        below = [*segments[number + 1 : number + 4], "", "", ""]
        user = _SLURM_UID.fullmatch(below[0])
        name, step = below[1:3] if user else below[:2]
        job, sluid, part = _SLURM_JOB.fullmatch(name), _SLUID.fullmatch(name), _SLURM_STEP.fullmatch(step)
        if job or sluid:
            return (
                job[1] if job else "",
                sluid[0] if sluid else "",
                part[1] if part else "",
                int(user[1]) if user else None,
            )
    return "", "", "", None


def _pod(segments: Sequence[str]) -> tuple[int | None, str]:
    """Where the innermost pod is, and its UID."""
    found: tuple[int | None, str] = (None, "")
    for number, segment in enumerate(segments):
        match = _POD_SLICE.fullmatch(segment)
        if not match and _KUBEPODS in segments[:number]:
            match = _POD_FOLDER.fullmatch(segment)
        if match:
            found = (number, _dashed(match[1]))
    return found


def _dashed(uid: str) -> str:
    return uid.replace("_", "-")


def _container(segments: Sequence[str], pod: int | None) -> tuple[str, str]:
    """Id and runtime: of the pod's own container, or of the outermost, which is the one that this host's runtime knows.

    Containers inside of it are the container's own affair.
    """
    for number, segment in enumerate(segments):
        if pod is not None and number <= pod:
            continue
        match = _CONTAINER.fullmatch(segment)
        if match:
            runtime = _RUNTIMES.get(match[1] or "", "")
            return match[2], runtime or _PARENTS.get(segments[number - 1] if number else "", "")
        if "ecs" in segments[:number] and _ECS_CONTAINER.fullmatch(segment):
            return segment, ""
    return "", ""


def _owner_of_file(root: str) -> Owner:
    kubelet, docker, podman = (each.fullmatch(root) for each in (_KUBELET_FILES, _DOCKER_FILES, _PODMAN_FILES))
    if kubelet:
        return Owner(pod_uid=_dashed(kubelet[1]))
    if docker:
        return Owner(container_id=docker[1], runtime="docker")
    return Owner(container_id=podman[1], runtime="podman") if podman else NOBODY
