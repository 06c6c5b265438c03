"""A stand-in for NVIDIA's package repository, signed and served over HTTP: packages of the same names and places.

In them are the library that plays a hostengine in these tests, and NVIDIA's own bindings for Python out of the wheel
that carries them. What NVIDIA's real packages bring besides is not seen.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.util
import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.abi.dcgm.bindings import WHEEL
from tests.abi.dcgm.build import SONAME

VERSION = "1:4.5.2-1"
KEYRING = "cuda-keyring_1.1-1_all.deb"
_KEY = "usr/share/keyrings/cuda-archive-keyring.gpg"
_CORE, _PROPRIETARY = "datacenter-gpu-manager-4-core", "datacenter-gpu-manager-4-proprietary"
_BINDINGS = "usr/share/datacenter-gpu-manager-4/bindings/python3"
_FOLDERS = ("x86_64", "sbsa")  # as NVIDIA calls the architectures


def missing() -> str:
    """Why it cannot be made here; empty where it can."""
    absent = [name for name in ("gpg", "dpkg-deb", "gcc") if shutil.which(name) is None]
    if absent:
        return f"the stand-in for NVIDIA's packages needs Debian's packages {' '.join(absent)}"
    found = importlib.util.find_spec(WHEEL.split(".", maxsplit=1)[0])
    return "" if found else "the stand-in for NVIDIA's packages needs the bindings in triton-model-analyzer"


@dataclass(frozen=True)
class Repository:
    """Where it is served, and the sum of the package with its key."""

    url: str
    keyring_sum: str

    def arguments(self) -> list[str]:
        """Of a build."""
        values = {
            "NVIDIA_REPOSITORY": self.url,
            "NVIDIA_KEYRING": KEYRING,
            "NVIDIA_KEYRING_SHA256": self.keyring_sum,
            "DCGM_VERSION": VERSION,
        }
        return [word for key, value in values.items() for word in ("--build-arg", f"{key}={value}")]


@contextlib.contextmanager
def served(folder: Path, library: Path) -> Iterator[Repository]:
    """With the library in the folder ``library``."""
    root = folder / "repository"
    place = root / _FOLDERS[0]
    place.mkdir(parents=True)
    for name in _FOLDERS[1:]:
        (root / name).symlink_to(_FOLDERS[0])
    with _signing() as signer:
        key = folder / "key" / _KEY
        key.parent.mkdir(parents=True)
        key.write_bytes(signer.public())
        keyring = _package(folder / "key", place / KEYRING, "cuda-keyring", "1.1-1", "all")
        _fill(folder / "core", library)
        _package(folder / "core", place / f"{_CORE}.deb", _CORE, VERSION)
        (folder / "proprietary").mkdir()
        needs = f"{_CORE} (= {VERSION})"
        _package(folder / "proprietary", place / f"{_PROPRIETARY}.deb", _PROPRIETARY, VERSION, needs=needs)
        _index(place, signer)
    handler = functools.partial(_Quiet, directory=str(root))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield Repository(f"http://127.0.0.1:{server.server_port}", hashlib.sha256(keyring.read_bytes()).hexdigest())
    finally:
        server.shutdown()
        server.server_close()


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Nothing."""


def _fill(root: Path, library: Path) -> None:
    """The library, and the bindings as plain modules, which is how NVIDIA's package has them."""
    libraries, bindings = root / "usr/lib" / f"{os.uname().machine}-linux-gnu", root / _BINDINGS
    libraries.mkdir(parents=True)
    bindings.mkdir(parents=True)
    shutil.copy(library / SONAME, libraries)
    spec = importlib.util.find_spec(WHEEL)
    assert spec is not None
    assert spec.origin is not None
    for module in Path(spec.origin).parent.glob("*.py"):
        (bindings / module.name).write_text(module.read_text().replace(f"{WHEEL}.", ""))


def _package(
    root: Path, target: Path, name: str, version: str, architecture: str | None = None, needs: str | None = None
) -> Path:
    own = subprocess.run(["dpkg", "--print-architecture"], capture_output=True, text=True, check=True).stdout.strip()
    fields = {
        "Package": name,
        "Version": version,
        "Architecture": architecture or own,
        "Maintainer": "nobody <nobody@localhost>",
        "Description": "stand-in for tests",
        **({"Depends": needs} if needs else {}),
    }
    control = root / "DEBIAN" / "control"
    control.parent.mkdir()
    control.write_text("".join(f"{key}: {value}\n" for key, value in fields.items()))
    build = ["dpkg-deb", "--root-owner-group", "-Zgzip", "--build", str(root), str(target)]
    subprocess.run(build, check=True, capture_output=True)
    return target


def _index(place: Path, signer: _Signer) -> None:
    """Packages, and InRelease with its sum and a signature."""
    entries = []
    for deb in sorted(place.glob("*.deb")):
        control = subprocess.run(["dpkg-deb", "-f", deb], capture_output=True, text=True, check=True).stdout
        content = deb.read_bytes()
        digest = hashlib.sha256(content).hexdigest()
        entries.append(f"{control}Filename: ./{deb.name}\nSize: {len(content)}\nSHA256: {digest}\n")
    packages = "\n".join(entries).encode()
    (place / "Packages").write_bytes(packages)
    digest = hashlib.sha256(packages).hexdigest()
    release = f"Origin: tests\nDate: Thu, 01 Jan 2026 00:00:00 UTC\nSHA256:\n {digest} {len(packages)} Packages\n"
    (place / "InRelease").write_bytes(signer.signed(release.encode()))


class _Signer:
    """A key in a folder of its own."""

    def __init__(self, home: Path) -> None:
        self._gpg = ["gpg", "--homedir", str(home), "--batch", "--quiet", "--passphrase", ""]
        self._run(["--quick-generate-key", "tests", "ed25519", "sign", "never"])

    def public(self) -> bytes:
        return self._run(["--export"])

    def signed(self, text: bytes) -> bytes:
        return self._run(["--clearsign"], text)

    def _run(self, arguments: list[str], given: bytes = b"") -> bytes:
        return subprocess.run([*self._gpg, *arguments], input=given, capture_output=True, check=True).stdout


@contextlib.contextmanager
def _signing() -> Iterator[_Signer]:
    with tempfile.TemporaryDirectory() as home:  # gpg's socket wants a short path
        try:
            yield _Signer(Path(home))
        finally:
            subprocess.run(["gpgconf", "--homedir", home, "--kill", "all"], check=False, capture_output=True)
