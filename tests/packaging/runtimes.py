"""Container runtimes that run an Order here: podman with a real image, or bubblewrap with this machine's files."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import pytest

from tests.packaging.helm import REPOSITORY
from tests.packaging.images import PODMAN
from tests.packaging.node import Order

IMAGE_VARIABLE = "HONEST_GPU_IMAGE"
ENTRYPOINT = "/opt/honest-gpu-exporter/bin/honest-gpu-exporter"  # of the image; a test holds the Dockerfile to it
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc/ld.so.cache", "/etc/alternatives")
_PATIENCE = 60


@dataclass
class Running:
    """A container that runs. ``pid`` is its first process, as this machine sees it; podman has a ``name`` for it."""

    pid: int
    name: str = ""
    _log: list[str] = field(default_factory=list)

    @property
    def log(self) -> str:
        return "".join(self._log)

    def status(self, key: str) -> str:
        """A line of /proc/PID/status."""
        text = Path(f"/proc/{self.pid}/status").read_text()
        (found,) = re.findall(rf"^{key}:\s*(.*)$", text, re.MULTILINE)
        return str(found)

    def root_is_read_only(self) -> bool:
        """Whether the mount at / may not be written to."""
        lines = (line.split() for line in Path(f"/proc/{self.pid}/mountinfo").read_text().splitlines())
        options = [line[5].split(",") for line in lines if line[4] == "/"]
        return "ro" in options[-1]

    def terminate(self) -> None:
        """What a kubelet sends first."""
        os.kill(self.pid, signal.SIGTERM)

    def gone(self) -> bool:
        return not Path(f"/proc/{self.pid}").exists() or self.status("State").startswith("Z")

    def follow(self, process: subprocess.Popen[str]) -> None:
        """Keep what it says."""

        def read() -> None:
            assert process.stdout is not None
            self._log.extend(process.stdout)

        threading.Thread(target=read, daemon=True).start()


class Runtime(Protocol):
    """Runs orders."""

    def run(self, order: Order) -> contextlib.AbstractContextManager[Running]:
        """Ended with the block."""
        ...


class Podman:
    """The real image as its Dockerfile made it."""

    def __init__(self, image: str) -> None:
        self._image = image

    def command(self, order: Order, name: str) -> list[str]:
        """The whole command line."""
        command = [*PODMAN, "run", "--name", name, "--rm", "--network", "host"]
        command += ["--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1000:1000"]
        command += ["--user", f"{order.user}:{order.group}"]
        command += [f"--cap-drop={name}" for name in order.dropped] + [f"--cap-add={name}" for name in order.added]
        if order.read_only_root:
            command += ["--read-only", "--read-only-tmpfs=false"]
        if not order.may_gain_privileges:
            command += ["--security-opt", "no-new-privileges"]
        if order.host_pid:
            command += ["--pid", "host"]
        for mount in order.mounts:
            command += ["--volume", f"{mount.source}:{mount.target}{':ro' if mount.read_only else ''}"]
        for key, value in order.environment.items():
            command += ["--env", f"{key}={value}"]
        return [*command, self._image, *order.arguments]

    @contextlib.contextmanager
    def run(self, order: Order) -> Iterator[Running]:
        name = f"honest-gpu-test-{uuid.uuid4().hex[:8]}"
        process = _start(self.command(order, name))
        try:
            running = Running(self._pid(name, process), name)
            running.follow(process)
            yield running
        finally:
            subprocess.run([*PODMAN, "rm", "--force", "--time", "0", name], capture_output=True, check=False)
            process.wait(_PATIENCE)

    def health(self, running: Running) -> tuple[int, str]:
        """What the image's own health check says: exit status and output."""
        done = subprocess.run(
            [*PODMAN, "healthcheck", "run", running.name], capture_output=True, text=True, check=False
        )
        return done.returncode, (done.stdout + done.stderr).strip()

    def execute(self, running: Running, *command: str) -> subprocess.CompletedProcess[str]:
        """Inside, to its end."""
        whole = [*PODMAN, "exec", running.name, *command]
        return subprocess.run(whole, capture_output=True, text=True, check=False, timeout=_PATIENCE)

    def _pid(self, name: str, process: subprocess.Popen[str]) -> int:
        waiting = threading.Event()
        for _ in range(_PATIENCE * 10):
            asked = [*PODMAN, "inspect", name, "--format", "{{.State.Pid}}"]
            done = subprocess.run(asked, capture_output=True, text=True, check=False)
            if done.returncode == 0 and done.stdout.strip() not in ("", "0"):
                return int(done.stdout)
            if process.poll() is not None:
                break
            waiting.wait(0.1)
        pytest.fail(f"podman did not start it: {process.communicate()[0]}")


class Bubblewrap:
    """This machine's Python in place of the image, behind the same walls; no seccomp profile.

    The user is one of a user namespace: files of whoever runs the test are readable for it. Skips where user namespaces
    are not to be had.
    """

    def __init__(self) -> None:
        binary = shutil.which("bwrap")
        if binary is None:
            pytest.skip("bubblewrap is not installed (Debian package bubblewrap)")
        tried = subprocess.run(
            [binary, "--unshare-user", "--unshare-pid", "--ro-bind", "/", "/", "--proc", "/proc", "true"],
            capture_output=True,
            text=True,
            check=False,
        )
        if tried.returncode != 0:
            pytest.skip(f"bubblewrap cannot make namespaces here: {tried.stderr.strip()}")
        self._bwrap = binary

    def command(self, order: Order, information: int) -> list[str]:
        """The whole command line; ``information`` is an open file that bwrap tells the pid to."""
        command = [self._bwrap, "--die-with-parent", "--unshare-user", "--unshare-ipc", "--info-fd", str(information)]
        command += ["--uid", str(order.user), "--gid", str(order.group)]
        command += ["--cap-drop", "ALL"] if "ALL" in order.dropped else []
        for name in order.added:
            command += ["--cap-add", f"CAP_{name}"]
        if not order.host_pid:
            command += ["--unshare-pid", "--as-pid-1"]
        folders = {*_SYSTEM, sys.base_prefix, sys.prefix, str(REPOSITORY)}
        for folder in sorted(folders):
            command += ["--ro-bind-try", folder, folder]
        command += ["--proc", "/proc", "--dev", "/dev"]
        for mount in order.mounts:
            command += ["--ro-bind" if mount.read_only else "--bind", str(mount.source), mount.target]
        if order.read_only_root:
            command += ["--remount-ro", "/"]
        command += ["--clearenv", "--setenv", "PATH", "/usr/bin:/bin", "--setenv", "PYTHONDONTWRITEBYTECODE", "1"]
        for key, value in order.environment.items():
            command += ["--setenv", key, value]
        return [*command, "--chdir", "/", sys.executable, "-m", "exporter", *order.arguments]

    @contextlib.contextmanager
    def run(self, order: Order) -> Iterator[Running]:
        reading, writing = os.pipe()
        process = _start(self.command(order, writing), writing)
        os.close(writing)
        with os.fdopen(reading) as information:
            said = information.read()
        try:
            if not said:
                pytest.fail(f"bubblewrap did not start it: {process.communicate()[0]}")
            running = Running(int(json.loads(said)["child-pid"]))
            running.follow(process)
            yield running
        finally:
            process.kill()
            process.wait(_PATIENCE)


def _start(command: list[str], *files: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True, pass_fds=files
    )
