"""Every dependency is declared where it is used, and brought in only where it is needed."""

from __future__ import annotations

import ast
import importlib
import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
toml: Any = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
PROJECT = toml.loads((ROOT / "pyproject.toml").read_text())["project"]

OURS = {"exporter", "tests", "bench", "dashboards"}
PACKAGES = {"yaml": "pyyaml", "pynvml": "nvidia-ml-py", "grpc": "grpcio", "google": "protobuf"}  # by another name
TOOLS = {"mypy", "pytest-xdist", "ruff", "types-psutil", "types-pyyaml"}  # run or read, never imported
KUBERNETES = ROOT / "exporter" / "attribution" / "kubernetes"


def declared(extra: str | None = None) -> set[str]:
    found = PROJECT["dependencies"] if extra is None else PROJECT["optional-dependencies"][extra]
    return {canonicalize_name(Requirement(text).name) for text in found}


def imported(paths: Iterable[Path]) -> set[str]:
    """Packages of others that import statements name, those within functions too."""
    names: set[str] = set()
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
                names.add(node.module)
    modules = {name.split(".")[0] for name in names} - OURS - set(sys.stdlib_module_names) - {"_typeshed"}
    return {canonicalize_name(PACKAGES.get(module, module)) for module in modules}


def files(*folders: str) -> list[Path]:
    return [path for folder in folders for path in (ROOT / folder).rglob("*.py")]


def test_what_is_declared_is_what_the_exporter_imports() -> None:
    assert imported(path for path in files("exporter") if KUBERNETES not in path.parents) == declared()


def test_the_extra_for_kubernetes_is_what_its_folder_imports() -> None:
    assert imported(KUBERNETES.rglob("*.py")) - declared() == declared("kubernetes")


def test_the_extra_for_tests_is_what_they_import_and_the_tools() -> None:
    """Beside what is shipped. What pytest.importorskip() asks for is not wanted: the test says that it skips."""
    shipped = declared() | declared("kubernetes")
    assert imported(files("tests", "bench", "dashboards")) - shipped == declared("test") - TOOLS
    assert declared("test") >= TOOLS


LAZY = """
import json, sys
from exporter.clock import VirtualClock
from exporter.cli import serve
from exporter.cli.stages import build_assembly
from exporter.core.pipeline import Pipeline
from exporter.metrics.catalogue import Selection, groups, samples
from exporter.metrics.family import Profile
from exporter.metrics.own import OwnState
from exporter.cli.arguments import parse
from exporter.config.loading import load

flags = json.loads(sys.argv[1])
asked = parse(flags)
build_assembly(load(asked.command, asked.flags, {}).settings, lambda snapshot: None)
profile = Profile.MINIMAL if "--metrics.profile=minimal" in flags else Profile.DEFAULT
assert samples(Pipeline(VirtualClock(), 1.0).publish(), groups(OwnState()), Selection(profile))
print(json.dumps([name for name in ("psutil", "prometheus_client", "grpc", "bcrypt") if name in sys.modules]))
"""


@pytest.mark.parametrize(
    ("flags", "modules"),
    [
        (["--source=simulated", "--metrics.profile=minimal"], []),
        (["--source=simulated"], []),
        (["--source=nvml", "--metrics.profile=minimal"], ["psutil"]),
        (["--source=nvml", "--metrics.profile=minimal", "--no-collector.host"], []),
        (["--source=simulated", "--metrics.profile=minimal", "--collector.processes"], ["psutil"]),
    ],
)
def test_the_daemon_imports_what_its_options_need(flags: list[str], modules: list[str]) -> None:
    done = subprocess.run([sys.executable, "-c", LAZY, json.dumps(flags)], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == modules
