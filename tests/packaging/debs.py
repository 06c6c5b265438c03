"""Packages as packaging/deb/build makes them, and versions after them."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from exporter.version import VERSION
from tests.packaging.helm import REPOSITORY

PACKAGE = "honest-gpu-exporter"
HOME = f"/opt/{PACKAGE}"
OPTIONS, CONFIG = f"/etc/default/{PACKAGE}", f"/etc/{PACKAGE}/config.yaml"
DEB_VERSION = VERSION.replace(".dev", "~dev")  # dpkg sorts it before the release, as Python does
_BUILD = REPOSITORY / "packaging" / "deb" / "build"
_QUICK = {"DPKG_DEB_COMPRESSOR_TYPE": "gzip", "DPKG_DEB_COMPRESSOR_LEVEL": "1"}  # xz takes longer than all the rest


@dataclass(frozen=True)
class Built:
    """Two builds of one tree, in folders of their own."""

    first: Path
    second: Path


def missing() -> str:
    """Why none can be built here; empty where they can."""
    if shutil.which("dpkg-deb") is None or not Path("/usr/bin/python3").exists():
        return "no Debian: dpkg-deb and /usr/bin/python3 are needed"
    asked = ["/usr/bin/python3", "-c", "import ensurepip, venv"]
    if subprocess.run(asked, check=False, capture_output=True).returncode:
        return "Debian's python3 cannot make environments (Debian package python3-venv)"
    return ""


def build_twice(first: Path, second: Path) -> Built:
    """At the same time, into two folders."""
    environment = {**os.environ, **_QUICK, "SOURCE_DATE_EPOCH": "1790000000"}
    builds = [
        subprocess.Popen([_BUILD, folder], env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for folder in (first, second)
    ]
    for build in builds:
        _, said = build.communicate()
        assert build.returncode == 0, said
    return Built(*(next(folder.glob("*.deb")) for folder in (first, second)))


def field(deb: Path, name: str) -> str:
    """A line of its control file."""
    return subprocess.run(["dpkg-deb", "-f", deb, name], capture_output=True, text=True, check=True).stdout.strip()


def unpack(deb: Path, folder: Path) -> Path:
    """Its files, and its control files in DEBIAN."""
    subprocess.run(["dpkg-deb", "-R", deb, folder], check=True)
    return folder


def newer(deb: Path, folder: Path, number: int) -> Path:
    """A version after ``deb``: another module in place of one, and other comments in a file of the configuration."""
    root = unpack(deb, folder / str(number))
    control = root / "DEBIAN" / "control"
    control.write_text(control.read_text().replace(f"Version: {DEB_VERSION}\n", f"Version: {DEB_VERSION}+{number}\n"))
    packages = next((root / HOME.lstrip("/")).glob("lib/python3.*/site-packages"))
    (packages / "exporter" / "py.typed").rename(packages / "exporter" / f"renamed-{number}")
    options = root / OPTIONS.lstrip("/")
    options.write_text(f"{comment(number)}{options.read_text()}")
    target = folder / f"{number}.deb"
    command = ["dpkg-deb", "--root-owner-group", "--build", str(root), str(target)]
    subprocess.run(command, check=True, capture_output=True, env={**os.environ, **_QUICK})
    return target


def comment(number: int) -> str:
    """By which the file of a newer version is known."""
    return f"# of version {number}\n"
