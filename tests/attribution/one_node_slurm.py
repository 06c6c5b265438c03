"""A real Slurm of one node in a folder of its own: no munge, no accounting, character devices in place of GPUs."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

PROGRAMS = ("slurmctld", "slurmd", "srun", "sinfo")
_FREEZER = Path("/sys/fs/cgroup/freezer")
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full")  # any will do: Slurm only looks whether they are devices


def why_not() -> str:
    """Why it cannot be run here; empty when it can."""
    missing = [name for name in PROGRAMS if not shutil.which(name)]
    if missing:
        return f"not on the PATH: {', '.join(missing)} (Debian: slurmctld slurmd slurm-client slurm-wlm-basic-plugins)"
    return "" if os.geteuid() == 0 else "slurmd wants to be root"


def until(happened: Callable[[], bool], what: str, seconds: float = 60.0) -> None:
    """Waits for it; fails when it does not come."""
    end = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < end, f"{what} did not happen"
        time.sleep(0.05)


def _free_ports() -> tuple[int, int]:
    with socket.socket() as first, socket.socket() as second:
        for listener in (first, second):
            listener.bind(("127.0.0.1", 0))
        return int(first.getsockname()[1]), int(second.getsockname()[1])


class OneNodeSlurm:
    """Starts with ``with``; ``gpus`` devices, numbered from 0 by Slurm."""

    def __init__(self, folder: Path, prolog: Path, epilog: Path, gpus: int = 3) -> None:
        self._folder = folder
        self._node = socket.gethostname().partition(".")[0]
        self.cgroups = _FREEZER.is_dir() and not any(_FREEZER.glob("slurm*"))
        for name in ("state", "spool"):
            (folder / name).mkdir(parents=True)
        controller_port, node_port = _free_ports()
        user = pwd.getpwuid(os.geteuid()).pw_name
        (folder / "slurm.conf").write_text(
            f"""\
ClusterName=test
SlurmctldHost={self._node}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmdPort={node_port}
AuthType=auth/none
CredType=cred/none
SlurmUser={user}
SlurmdUser={user}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/{"cgroup" if self.cgroups else "linuxproc"}
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
SwitchType=switch/none
ReturnToService=2
GresTypes=gpu
PrologFlags=Alloc
Prolog={prolog}
Epilog={epilog}
NodeName={self._node} NodeAddr=127.0.0.1 CPUs={os.cpu_count() or 1} Gres=gpu:{gpus} State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES State=UP OverSubscribe=FORCE:4
"""
        )
        (folder / "gres.conf").write_text("".join(f"Name=gpu File={device}\n" for device in _DEVICES[:gpus]))
        (folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\nCgroupAutomount=yes\n")
        self._env = os.environ | {"SLURM_CONF": str(folder / "slurm.conf")}
        self._daemons: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> OneNodeSlurm:
        try:
            for name in ("slurmctld", "slurmd"):
                with (self._folder / f"{name}.log").open("wb") as log:
                    self._daemons.append(
                        subprocess.Popen([name, "-D"], env=self._env, stdout=log, stderr=log, cwd=self._folder)
                    )
            until(lambda: self._state() == "idle", "the node came up")
        except BaseException:
            self.close()
            raise
        return self

    def _state(self) -> str:
        command = ["sinfo", "--noheader", "--format=%T"]
        return subprocess.run(command, env=self._env, capture_output=True, text=True, check=False).stdout.strip()

    def job(self, *options: str, script: str) -> subprocess.Popen[bytes]:
        """A job that runs a script for the shell."""
        return subprocess.Popen(["srun", *options, "sh", "-c", script], env=self._env, cwd=self._folder)

    def log(self) -> str:
        return (self._folder / "slurmd.log").read_text()

    def close(self) -> None:
        for daemon in reversed(self._daemons):
            daemon.terminate()
            try:
                daemon.wait(30)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        if self.cgroups:
            for left in _FREEZER.glob("slurm*"):
                with contextlib.suppress(OSError):  # not empty: not ours to break
                    left.rmdir()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
