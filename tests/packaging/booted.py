"""A small Debian that runs systemd, in a container of podman's: units are started there with their walls.

The container may make namespaces, which the walls are made of. It has no devices of its own and no limits of memory:
DeviceAllow and MemoryMax are not seen here.
"""

from __future__ import annotations

import contextlib
import subprocess
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

from tests.packaging.images import PODMAN
from tests.packaging.machine import Machine
from tests.packaging.units import NAME

_PATIENCE = 300  # seconds
_WAIT = 60.0  # seconds
_LIMITS = ("--ulimit", "nofile=1024:1024", "--ulimit", "nproc=4096:4096")
_NAMESPACES = ("--cap-add", "SYS_ADMIN", "--cap-add", "SYS_PTRACE", "--security-opt", "seccomp=unconfined")


class NotBooted(Exception):
    """systemd does not come up; the message says why."""


class Booted:
    """The container named ``name``."""

    def __init__(self, name: str) -> None:
        self._name = name

    def run(self, *command: str, check: bool = True) -> str:
        """As root, to its end; what it says."""
        whole = [*PODMAN, "exec", "--env", "DEBIAN_FRONTEND=noninteractive", self._name, *command]
        done = subprocess.run(
            whole, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=_PATIENCE
        )
        assert not check or done.returncode == 0, f"{command}: {done.returncode}\n{done.stdout}"
        return done.stdout.strip()

    def install(self, deb: Path) -> None:
        """Files that were edited stay."""
        subprocess.run([*PODMAN, "cp", str(deb), f"{self._name}:/root/{deb.name}"], check=True)
        keep = ("-o", "Dpkg::Options::=--force-confold")
        self.run("apt-get", "-y", "-q", "--no-install-recommends", *keep, "install", f"/root/{deb.name}")

    def write(self, path: str, text: str) -> None:
        """A file, and its folder."""
        self.run("sh", "-c", 'mkdir -p "$(dirname "$1")" && printf %s "$2" >"$1"', "sh", path, text)

    def property(self, name: str) -> str:
        """Of the unit."""
        return self.run("systemctl", "show", "--property", name, "--value", NAME)

    def journal(self) -> str:
        """All that the unit said."""
        return self.run("journalctl", "--no-pager", "--output=cat", "--unit", NAME)

    def process(self, file: str) -> str:
        """A file of /proc/PID of what the unit runs."""
        return self.run("cat", f"/proc/{self.property('MainPID')}/{file}")


@contextlib.contextmanager
def boot(machine: Machine) -> Iterator[Booted]:
    """Until the block ends. Raises NotBooted."""
    machine.run("apt-get", "-y", "-q", "--no-install-recommends", "install", "systemd")
    name = f"honest-gpu-test-{uuid.uuid4().hex[:8]}"
    command = [*PODMAN, "run", "--detach", "--name", name, "--network", "host", "--systemd", "always"]
    done = subprocess.run(
        [*command, *_LIMITS, *_NAMESPACES, "--rootfs", str(machine.root), "/lib/systemd/systemd"],
        capture_output=True,
        text=True,
        check=False,
    )
    try:
        if done.returncode != 0:
            raise NotBooted(f"podman cannot start systemd: {done.stderr.strip()}")
        booted = Booted(name)
        _wait_for_systemd(booted)
        yield booted
    finally:
        subprocess.run([*PODMAN, "rm", "--force", "--time", "0", name], capture_output=True, check=False)


def _wait_for_systemd(booted: Booted) -> None:
    deadline = time.monotonic() + _WAIT
    said = ""
    while time.monotonic() < deadline:
        said = booted.run("systemctl", "is-system-running", check=False)
        if said in ("running", "degraded"):
            return
        time.sleep(0.2)
    raise NotBooted(f"systemd does not come up in a container: {said}")
