"""Where the bindings are looked for, and what is said when there are none."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from exporter.model import SourceError
from exporter.sources.dcgm.bindings import Bindings, find_bindings, library_folder

NAMES = ("dcgm_agent", "dcgm_structs", "dcgm_fields")


@pytest.fixture(autouse=True)
def _modules_as_before() -> Iterator[None]:
    before = {name: sys.modules.pop(name, None) for name in NAMES}
    importlib.invalidate_caches()
    yield
    for name, module in before.items():
        sys.modules.pop(name, None)
        if module is not None:
            sys.modules[name] = module


def folder_of(path: Path, mark: str, *, structs: str = "") -> Path:
    path.mkdir(parents=True)
    (path / "dcgm_structs.py").write_text(f"mark = {mark!r}\n{structs}\n")
    (path / "dcgm_fields.py").write_text("import dcgm_structs\n")
    (path / "dcgm_agent.py").write_text("import dcgm_fields, dcgm_structs\n")
    (path / "common").mkdir()
    (path / "common" / "__init__.py").write_text("")
    return path


def mark(bindings: Bindings) -> str:
    assert bindings.agent.dcgm_structs is bindings.structs
    return str(bindings.structs.mark)


def test_the_given_folder_comes_first_then_the_folders_in_order(tmp_path: Path) -> None:
    given, new, old = (folder_of(tmp_path / name, name) for name in ("given", "new", "old"))
    assert mark(find_bindings(given, folders=(new, old), packages=())) == "given"
    assert mark(find_bindings(folders=(new, old), packages=())) == "new"
    assert mark(find_bindings(folders=(tmp_path / "none", old), packages=())) == "old"


def test_folders_come_before_installed_modules_and_these_before_the_wheel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = folder_of(tmp_path / "site", "installed")
    wheel = folder_of(tmp_path / "site" / "wheel", "wheel")
    (wheel / "__init__.py").write_text("")
    for name in ("dcgm_agent.py", "dcgm_fields.py"):
        (wheel / name).write_text("from wheel import dcgm_structs\n")
    monkeypatch.syspath_prepend(str(installed))
    packages = ("", "wheel.")
    assert mark(find_bindings(folders=(folder_of(tmp_path / "dcgm", "folder"),), packages=packages)) == "folder"
    for name in NAMES:
        del sys.modules[name]
    assert mark(find_bindings(folders=(), packages=packages)) == "installed"
    (installed / "dcgm_agent.py").unlink()
    for name in NAMES:
        del sys.modules[name]
    found = find_bindings(folders=(), packages=packages)
    assert (mark(found), found.origin) == ("wheel", "package wheel")


def test_the_path_is_left_as_it_was(tmp_path: Path) -> None:
    before = list(sys.path)
    find_bindings(folder_of(tmp_path / "dcgm", "x"))
    assert sys.path == before
    assert "common" not in sys.modules
    broken = folder_of(tmp_path / "broken", "x", structs="raise RuntimeError('half an upgrade')")
    with pytest.raises(SourceError, match="half an upgrade"):
        find_bindings(broken)
    assert sys.path == before


def test_a_given_folder_without_bindings_is_an_error(tmp_path: Path) -> None:
    other = folder_of(tmp_path / "other", "other")
    with pytest.raises(SourceError, match=f"no DCGM bindings in {tmp_path}") as caught:
        find_bindings(tmp_path, folders=(other,))
    assert "--dcgm.bindings" in caught.value.remedy


def test_broken_ones_are_passed_over_and_named_when_there_are_no_others(tmp_path: Path) -> None:
    broken = folder_of(tmp_path / "broken", "x", structs="import no_such_module")
    good = folder_of(tmp_path / "good", "good")
    assert mark(find_bindings(folders=(broken, good), packages=())) == "good"
    with pytest.raises(SourceError, match="no_such_module"):
        find_bindings(folders=(broken,), packages=("no_such_package.",))


@pytest.mark.parametrize(
    ("structs", "version", "fits", "differs"),
    [
        ("", "3", "3.3.9", "4.6.0"),
        ("class c_dcgmNvLinkStatus_v4: pass", "4.0-4.5", "4.5.3", "3.3.9"),
        ("class c_dcgmNvLinkStatus_v4: pass\nclass c_dcgmNvLinkStatus_v5: pass", "4.6+", "4.7.1", "4.5.3"),
    ],
)
def test_releases(tmp_path: Path, structs: str, version: str, fits: str, differs: str) -> None:
    found = find_bindings(folder_of(tmp_path / "dcgm", "x", structs=structs))
    assert found.version == version
    assert found.fit(fits)
    assert found.fit("")
    assert not found.fit(differs)


def test_the_library_is_found_on_the_loader_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    empty, full = tmp_path / "empty", tmp_path / "full"
    empty.mkdir()
    full.mkdir()
    (full / "libdcgm.so.4").touch()
    monkeypatch.setenv("LD_LIBRARY_PATH", f"{empty}:{full}:")
    assert library_folder() == str(full)
    monkeypatch.setenv("LD_LIBRARY_PATH", str(empty))
    assert library_folder() is None
    monkeypatch.delenv("LD_LIBRARY_PATH")
    assert library_folder() is None
