"""Images of the Dockerfile, built here without a registry of images: their base is a Debian by debootstrap."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from typing import Any

from tests.packaging.helm import REPOSITORY

# crun, which podman prefers, cannot run where control groups of both versions are mounted
PODMAN = ("podman", "--runtime", "runc", "--cgroup-manager", "cgroupfs", "--events-backend", "file")
NAME = "localhost/honest-gpu-exporter"
_DATE = "1790000000"  # of all files that a build writes
_PATIENCE = 900  # seconds


def missing() -> str:
    """Why images cannot be built here; empty where they can."""
    if os.geteuid() != 0:
        return "building images needs root: the base is made by debootstrap"
    absent = [name for name in ("podman", "runc") if shutil.which(name) is None]
    if absent:
        return f"building images needs Debian's packages {' '.join(absent)}"
    done = subprocess.run([*PODMAN, "info"], capture_output=True, text=True, check=False)
    return f"podman cannot work here: {done.stderr.strip()}" if done.returncode else ""


def build(target: str, tag: str, arguments: Sequence[str] = (), environment: dict[str, str] | None = None) -> str:
    """From nothing, so that no layer is an older build's; the name. Raises RuntimeError with the end of the log."""
    name = f"{NAME}:{tag}"
    before = _id(name)
    script = str(REPOSITORY / "tests" / "packaging" / "build_image")
    done = subprocess.run(
        [script, target, name, "--layers=false", "--timestamp", _DATE, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=_PATIENCE,
        env={**os.environ, **(environment or {})},
    )
    if done.returncode != 0:
        raise RuntimeError(f"{target} cannot be built:\n{done.stderr[-4000:]}")
    if before not in ("", _id(name)):
        subprocess.run([*PODMAN, "rmi", before], capture_output=True, check=False)
    return name


def remove(name: str) -> None:
    """The image, if it is there."""
    subprocess.run([*PODMAN, "rmi", "--force", name], capture_output=True, check=False)


def inspect(name: str) -> dict[str, Any]:
    """What podman knows of an image."""
    done = subprocess.run([*PODMAN, "image", "inspect", name], capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)[0]
    return found


def _id(name: str) -> str:
    asked = [*PODMAN, "image", "inspect", name, "--format", "{{.Id}}"]
    return subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()
