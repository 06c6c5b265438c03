"""Processes that hold GPUs, and whose they are: a job, a container, or at least a user."""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import psutil

from exporter.attribution.cgroup import Owner, from_mountinfo, parse
from exporter.attribution.holdings import Allocations, AttributionError, Claim, Workload, holdings
from exporter.attribution.small_files import read_small
from exporter.model import Device, Entity

log = logging.getLogger(__name__)

SHORT_ID = 12  # characters of a container's id, as `docker ps` shows it
KERNEL_NAME = 15  # characters that the kernel keeps; psutil completes longer names from the command line
MOST_MOUNTS = 1 << 20  # bytes of mountinfo: a node with many volumes
_MPS_SERVER = "nvidia-cuda-mps"  # the kernel keeps 15 characters of nvidia-cuda-mps-server
_NO_HOST_VIEW = "processes cannot be identified: {} is not the host's, so the driver's process ids mean others here"
_REMEDY = (
    "run the exporter in the host's PID namespace: hostPID: true in Kubernetes, --pid=host with docker or podman; if "
    "/proc is mounted with hidepid, allow the exporter's group with gid="
)

Jobs = Callable[[str], "Workload | None"]
Pods = Callable[[str, str], "Workload | None"]


def _unknown_job(name: str) -> Workload | None:
    return None


def _unknown_pod(uid: str, container_id: str) -> Workload | None:
    return None


class _Process(NamedTuple):
    owner: Owner
    uid: int | None
    command: str  # the kernel's name of it, free for the process to choose

    @property
    def mps_server(self) -> bool:
        return self.command.startswith(_MPS_SERVER)


class ProcessAttributor:
    """Asks /proc, which is where psutil.PROCFS_PATH says, about the processes that the driver names."""

    def __init__(
        self,
        processes: Callable[[], Iterable[tuple[Entity, int]]],
        user: Callable[[int], str],
        jobs: Jobs | None = None,
        pods: Pods | None = None,
    ) -> None:
        """``processes``: (entity, process id) as last read from the driver. ``user``: the name of a user by number.

        ``jobs``: all that is known of a job by its number or SLUID, and ``pods``: of a container by the pod's UID and
        its id (without a container where the id is not known); None where nothing is known.
        """
        self._processes = processes
        self._user = user
        self._known_job, self._known_pod = jobs or _unknown_job, pods or _unknown_pod
        self._proc = Path(psutil.PROCFS_PATH)
        self._job_users: dict[str, str] = {}
        self._workloads: dict[int, Workload] = {}
        self._commands: dict[int, str] = {}

    @property
    def name(self) -> str:
        return "processes"

    def read(self, devices: Sequence[Device]) -> Allocations:
        """Raises AttributionError without a view of the host's processes: nobody would seem to hold anything.

        Not resolved are processes of other devices, those that are not visible (they have just ended, or are hidden)
        or not readable, and those whose user is not known.
        """
        if not self._sees_host():
            self._workloads, self._commands = {}, {}
            raise AttributionError(_NO_HOST_VIEW.format(self._proc), _REMEDY)
        present = {device.entity for device in devices}
        unresolved: Counter[str] = Counter()
        claims: list[tuple[Entity, Workload, Owner]] = []
        served: set[Entity] = set()
        workloads: dict[int, Workload] = {}
        seen: dict[int, _Process | str] = {}
        for entity, pid in sorted(set(self._processes()), key=lambda each: (each[1], str(each[0]))):
            if entity not in present:
                unresolved["unknown_device"] += 1
                continue
            process = seen.get(pid) or seen.setdefault(pid, self._look(pid))
            if isinstance(process, str):
                unresolved[process] += 1
                continue
            if process.mps_server:
                served.add(entity)
                if not process.owner:
                    continue  # the node's own: it computes for its clients, which are listed beside it
            workload = self._workload(process)
            if any(workload):
                workloads[pid] = workload
                claims.append((entity, workload, process.owner))
            else:
                unresolved["process_without_user"] += 1
        self._workloads = workloads
        self._commands = {pid: each.command for pid, each in seen.items() if isinstance(each, _Process)}
        alive = {workload.job_id for workload in workloads.values()}
        self._job_users = {job: user for job, user in self._job_users.items() if job in alive}
        return Allocations(
            self.name,
            holdings(
                Claim(entity, who, entity in served, _labels(owner, who), owner.uid if who.job_id else None)
                for entity, who, owner in claims
            ),
            unresolved,
        )

    def owner(self, pid: int, holders: Sequence[Workload]) -> Workload | None:
        """Which of a device's holders a process belongs to, by the last read; may be asked from any thread.

        A process of another job or pod belongs to none of them. One that tells neither (a scheduler without control
        groups, a process that is not visible) is the only holder's, where there is one.
        """
        found = self._workloads.get(pid)
        if found is not None:
            if found in holders:
                return found
            if found.job_id:
                return next((holder for holder in holders if holder.job_id == found.job_id), None)
            if found.pod and found.container:
                return None
            if found.pod:  # which of its containers is not known: the only one that holds the device
                own = [holder for holder in holders if holder[:2] == found[:2]]
                return own[0] if len(own) == 1 else None
        return holders[0] if len(holders) == 1 else None

    def command(self, pid: int) -> str:
        """Name of a process by the last read; empty: not known. May be asked from any thread."""
        return self._commands.get(pid, "")

    def close(self) -> None:
        """Holds nothing open."""

    def _sees_host(self) -> bool:
        """Whether process ids here are the driver's. Process 2 is the kernel's kthreadd in the first namespace only."""
        try:
            return _name(2) == "kthreadd"
        except (psutil.Error, OSError, ValueError, IndexError):  # the last two: not the kernel's form
            return False

    def _look(self, pid: int) -> _Process | str:
        """What /proc tells of a process; else why it does not, as a kind of unresolved."""
        folder = self._proc / str(pid)
        try:
            owner = parse(read_small(folder / "cgroup"))
            if not owner:
                owner = self._by_mounts(folder)
            return _Process(owner, _real_user(read_small(folder / "status")), _name(pid))
        except (FileNotFoundError, ProcessLookupError, psutil.NoSuchProcess):
            return "process_not_visible"
        except (OSError, psutil.AccessDenied, ValueError, IndexError) as error:  # the last two: not the kernel's form
            log.debug("process %d cannot be inspected: %s", pid, error)
            return "process_unreadable"

    def _by_mounts(self, folder: Path) -> Owner:
        try:
            return from_mountinfo(read_small(folder / "mountinfo", MOST_MOUNTS))
        except OSError:
            return Owner()  # other users' mounts are not for everybody to see; the user is still known

    def _workload(self, process: _Process) -> Workload:
        owner = process.owner
        uid = process.uid if owner.uid is None else owner.uid
        user = "" if uid is None else self._user(uid)
        if owner.job:
            # A job is one user's, though its processes may run as others: the first seen stays.
            return self._known_job(owner.job) or Workload(
                job_id=owner.job, user=self._job_users.setdefault(owner.job, user)
            )
        if owner.pod_uid and (known := self._known_pod(owner.pod_uid, owner.container_id)):
            return known
        if owner.container_id:
            return Workload(container=owner.container_id[:SHORT_ID])
        return Workload(user=user)


def _name(pid: int) -> str:
    """The kernel's name of a process. Raises what psutil does."""
    return os.fsencode(psutil.Process(pid).name()[:KERNEL_NAME]).decode(errors="replace")


def _real_user(status: str) -> int | None:
    """The real user in /proc/PID/status (man 5 proc_pid_status), by the last line of that name.

    psutil.Process.uids() takes the first match anywhere: a process named "Uid:\\t0\\t0\\t0" would be root's.
    """
    found = None
    for line in status.split("\n"):
        key, _, values = line.partition(":\t")
        if key == "Uid":
            found = values.split("\t", 1)[0]
    return int(found) if found and found.isascii() and found.isdecimal() else None


def _labels(owner: Owner, workload: Workload) -> dict[str, str]:
    """The pod's UID, where its name is not known."""
    return {"pod_uid": owner.pod_uid} if owner.pod_uid and not (workload.pod or workload.job_id) else {}
