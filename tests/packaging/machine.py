"""A small Debian in a folder: packages are installed there, and the unit's program is run, without systemd."""

from __future__ import annotations

import contextlib
import os
import platform
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.packaging.helm import REPOSITORY
from tests.packaging.units import NAME, Unit

_PATIENCE = 600  # seconds
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class NoMachine(Exception):
    """A Debian root cannot be made here; the message says why."""


def own_release() -> str:
    """The release of Debian that runs here. Raises NoMachine where it is none."""
    try:
        system = platform.freedesktop_os_release()
    except OSError as error:
        raise NoMachine(f"which system this is cannot be told: {error}") from error
    if system.get("ID") != "debian" or "VERSION_CODENAME" not in system:
        raise NoMachine("this is not a release of Debian")
    return system["VERSION_CODENAME"]


def debian_root(release: str = "bookworm") -> Path:
    """The tar of a minimal Debian, made or kept from an earlier run. Raises NoMachine."""
    if os.geteuid() != 0:
        raise NoMachine("debootstrap needs root")
    if shutil.which("debootstrap") is None:
        raise NoMachine("debootstrap is not installed (Debian package debootstrap)")
    command = [str(REPOSITORY / "tests" / "packaging" / "debian_root"), release]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_PATIENCE)
    if done.returncode != 0:
        said = [*done.stderr.strip().splitlines(), *done.stdout.strip().splitlines()]
        raise NoMachine(f"debootstrap failed: {' | '.join(said[-3:])}")
    return Path(done.stdout.strip())


class Machine:
    """Lives in ``root``. Commands see its own processes only, and end with the one that started them."""

    def __init__(self, root: Path, tar: Path) -> None:
        self.root = root
        root.mkdir()
        subprocess.run(["tar", "-C", root, "-xpf", tar], check=True)
        self.path("/etc/dpkg/dpkg.cfg.d/quick").write_text("force-unsafe-io\n")
        shutil.copy("/etc/resolv.conf", self.path("/etc/resolv.conf"))

    def path(self, path: str) -> Path:
        """Where a file of the machine lies."""
        return self.root / path.lstrip("/")

    def run(self, *command: str, check: bool = True, answer: str = "") -> subprocess.CompletedProcess[str]:
        """As root, to its end; ``answer`` is typed to what it asks."""
        done = subprocess.run(
            self._inside(*command),
            input=answer,
            capture_output=True,
            text=True,
            check=False,
            env={"PATH": _PATH, "DEBIAN_FRONTEND": "noninteractive", "HOME": "/root"},
            timeout=_PATIENCE,
        )
        assert not check or done.returncode == 0, f"{command}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done

    def install(self, deb: Path, *options: str, answer: str = "") -> str:
        """With apt, which gets what the package depends on; what was said."""
        shutil.copy(deb, self.path("/tmp"))
        command = ["apt-get", "-y", "--no-install-recommends", "-q", *options, "install", f"/tmp/{deb.name}"]
        done = self.run(*command, answer=answer)
        return done.stdout + done.stderr

    @contextlib.contextmanager
    def started(self, *more: str) -> Iterator[subprocess.Popen[str]]:
        """What the installed unit starts, as its user without privileges; with ``more`` arguments."""
        unit = Unit.read(self.path(f"/lib/systemd/system/{NAME}"))
        user, group = unit.one("User"), unit.one("Group")
        dropped = ["--clear-groups", "--inh-caps=-all", "--bounding-set=-all", "--no-new-privs"]
        # a change of user makes a process forget that it shall end with its parent
        account = [f"--reuid={user}", f"--regid={group}", "--pdeathsig=KILL"]
        command = ["setpriv", *account, *dropped, *unit.command, *more]
        process = self._spawn(command, unit.environment(self.root))
        try:
            yield process
        finally:
            process.kill()  # unshare, whose end ends what is inside; it holds the pipe until then
            process.communicate(timeout=_PATIENCE)

    def _spawn(self, command: list[str], environment: Mapping[str, str]) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self._inside(*command),
            env={"PATH": _PATH, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def _inside(self, *command: str) -> list[str]:
        walls = ["unshare", "--mount", "--pid", "--fork", "--kill-child", f"--mount-proc={self.path('/proc')}"]
        return [*walls, "chroot", str(self.root), *command]
