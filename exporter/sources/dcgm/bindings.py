"""Finds NVIDIA's Python bindings: DCGM's packages install them in folders of their own, PyPI has them under no name.

Layouts: DCGM 4.x and 3.x (testing/CMakeLists.txt of NVIDIA/DCGM), the wheel triton-model-analyzer.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from exporter.model import SourceError

FOLDERS = (
    Path("/usr/share/datacenter-gpu-manager-4/bindings/python3"),
    Path("/usr/local/dcgm/bindings/python3"),
    Path("/usr/local/dcgm/bindings"),
)
PACKAGES = ("", "model_analyzer.monitor.dcgm.")  # installed as plain modules, or the wheel's copy
LIBRARIES = ("libdcgm.so.4", "libdcgm.so.3")
_MODULES = ("dcgm_structs", "dcgm_fields", "dcgm_agent")  # in the order in which they import one another
_REMEDY = (
    "install datacenter-gpu-manager-4-core and give its folder with --dcgm.bindings, "
    "or `pip install --no-deps triton-model-analyzer`"
)


@dataclass(frozen=True)
class Bindings:
    """NVIDIA's modules. They keep the loaded library in a global: one library for the life of the process."""

    agent: ModuleType
    structs: ModuleType
    fields: ModuleType
    origin: str
    """The folder or package they come from."""
    version: str
    """The releases of DCGM they were made for, as far as their structs show: "4.6+", "4.0-4.5" or "3"."""

    def fit(self, library: str) -> bool:
        """Whether they were made for this release of the library, such as "4.6.0"; True where it is not known."""
        number = tuple(int(part) for part in library.split(".")[:2] if part.isdigit())
        return len(number) < 2 or _version_for(number[0], number[1]) == self.version


def find_bindings(
    folder: Path | None = None, *, folders: Sequence[Path] = FOLDERS, packages: Sequence[str] = PACKAGES
) -> Bindings:
    """The first ones found: in ``folder``, in ``folders``, installed. SourceError names the places searched.

    A ``folder`` that is given and has none, or broken ones, is an error: nothing else is taken in its place.
    """
    if folder is not None:
        if not _in_folder(folder):
            raise SourceError(f"no DCGM bindings in {folder}: it has no dcgm_agent.py", _REMEDY)
        return _load_folder(folder)
    broken: list[str] = []
    for candidate in folders:
        if _in_folder(candidate):
            with _noting(broken):
                return _load_folder(candidate)
    for prefix in packages:
        if _installed(prefix):
            with _noting(broken):
                return _load(prefix, f"package {prefix.rstrip('.')}" if prefix else "installed modules")
    looked = ", ".join((*(str(path) for path in folders), *(f"{prefix}dcgm_agent" for prefix in packages)))
    why = f"; broken: {'; '.join(broken)}" if broken else ""
    raise SourceError(f"NVIDIA's DCGM bindings for Python were not found: looked for {looked}{why}", _REMEDY)


def library_folder() -> str | None:
    """The first folder of LD_LIBRARY_PATH with the DCGM library: older bindings do not search there themselves."""
    for folder in os.environ.get("LD_LIBRARY_PATH", "").split(":"):
        if folder and any(Path(folder, name).is_file() for name in LIBRARIES):
            return folder
    return None


@contextlib.contextmanager
def _noting(broken: list[str]) -> Iterator[None]:
    try:
        yield
    except SourceError as error:
        broken.append(str(error))


def _in_folder(folder: Path) -> bool:
    return (folder / "dcgm_agent.py").is_file()


def _installed(prefix: str) -> bool:
    try:
        return importlib.util.find_spec(f"{prefix}dcgm_agent") is not None
    except ModuleNotFoundError:
        return False


def _load_folder(folder: Path) -> Bindings:
    """In front of the path for the time of the import only: the folder also has a package named ``common``."""
    for name in _MODULES:
        loaded = sys.modules.get(name)
        if loaded is not None and Path(loaded.__file__ or "").parent.resolve() != folder.resolve():
            del sys.modules[name]
    entry = str(folder)
    sys.path.insert(0, entry)
    try:
        return _load("", entry)
    finally:
        sys.path.remove(entry)


def _load(prefix: str, origin: str) -> Bindings:
    try:
        structs, fields, agent = (importlib.import_module(prefix + name) for name in _MODULES)
    except Exception as error:
        raise SourceError(f"the DCGM bindings in {origin} cannot be imported: {error}", _REMEDY) from error
    return Bindings(agent, structs, fields, origin, _version(structs))


def _version(structs: ModuleType) -> str:
    """The bindings do not name their release. The struct of NVLink states grew with it (dcgm_structs.h)."""
    if hasattr(structs, "c_dcgmNvLinkStatus_v5"):
        return _version_for(4, 6)
    return _version_for(4, 0) if hasattr(structs, "c_dcgmNvLinkStatus_v4") else _version_for(3, 0)


def _version_for(major: int, minor: int) -> str:
    if (major, minor) >= (4, 6):
        return "4.6+"
    return "4.0-4.5" if major >= 4 else "3"
