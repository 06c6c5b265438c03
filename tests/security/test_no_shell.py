"""The package starts no program and runs no text as code: nothing that a file or a client says can become a command."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.system

PACKAGE = Path(__file__).parents[2] / "exporter"
MODULES = sorted(PACKAGE.rglob("*.py"))

# modules that start programs, run texts, or make objects of any kind out of bytes
MODULES_REFUSED = frozenset(
    {
        *(
            "subprocess",
            "multiprocessing",
            "pty",
            "popen2",
            "commands",
            "code",
            "codeop",
            "runpy",
            "pdb",
            "sh",
            "pexpect",
        ),
        *("pickle", "cPickle", "dill", "shelve", "marshal", "jsonpickle", "cloudpickle", "joblib"),
        *("xml", "telnetlib", "ftplib", "tempfile"),
    }
)
NAMES_REFUSED = frozenset({"eval", "exec", "compile", "__import__", "breakpoint", "input"})
OS_REFUSED = ("system", "popen", "exec", "spawn", "posix_spawn", "fork", "startfile")
YAML_REFUSED = frozenset({"unsafe_load", "full_load", "UnsafeLoader", "FullLoader", "Loader", "load_all"})

# file -> what it may, and why
ALLOWED: dict[str, dict[str, str]] = {
    "sources/dcgm/bindings.py": {
        "importlib.import_module": "NVIDIA's bindings, of a fixed name, from a folder that the administrator names"
    },
}


def found(tree: ast.Module) -> Iterator[str]:
    """What of the above a module uses."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] in MODULES_REFUSED)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (name for name in names if node.module.split(".")[0] in MODULES_REFUSED)
            yield from (name for name in names if _refused_attribute(*name.rsplit(".", 1)))
        elif isinstance(node, ast.Name) and node.id in NAMES_REFUSED:
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if _refused_attribute(node.value.id, node.attr):
                yield f"{node.value.id}.{node.attr}"
        elif isinstance(node, ast.keyword) and node.arg == "shell":
            yield "shell="


def _refused_attribute(module: str, name: str) -> bool:
    if module == "os":
        return name.startswith(OS_REFUSED)
    if module == "importlib":
        return name == "import_module"
    return module == "yaml" and name in YAML_REFUSED


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_nothing_is_started_or_run(path: Path) -> None:
    allowed = ALLOWED.get(str(path.relative_to(PACKAGE)), {})
    assert sorted(set(found(ast.parse(path.read_text()))) - allowed.keys()) == []


def test_what_is_allowed_is_used() -> None:
    for name, uses in ALLOWED.items():
        assert set(found(ast.parse((PACKAGE / name).read_text()))) == uses.keys(), name


@pytest.mark.parametrize(
    "text",
    [
        "import subprocess",
        "from subprocess import run",
        "import os\nos.system('x')",
        "from os import execv",
        "eval('1')",
        "run('x', shell=True)",
        "import pickle",
        "import yaml\nyaml.unsafe_load('')",
        "from importlib import import_module",
    ],
)
def test_the_search_finds(text: str) -> None:
    assert list(found(ast.parse(text)))
