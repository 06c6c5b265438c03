"""The web configurations of the documentation: taken by this exporter, and by Prometheus' own checker."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import bcrypt
import pytest

from exporter.web.config_format import read_settings
from exporter.web.web_config import Security
from tests.web.conftest import Authority

pytestmark = pytest.mark.system

EXAMPLES = sorted((Path(__file__).parents[2] / "docs" / "examples" / "web").glob("*.yml"))


@pytest.fixture
def installed(tmp_path: Path, authority: Authority, request: pytest.FixtureRequest) -> Path:
    """An example where it would be, with the certificates that it names."""
    identity = authority.issue("server")
    for folder in (tmp_path / "web", tmp_path / "tls"):
        folder.mkdir()
        identity.copy_to(folder, "tls")
        shutil.copy(authority.cert, folder / "ca.crt")
    return Path(shutil.copy(request.param, tmp_path / "web"))


def test_there_are_examples() -> None:
    assert [path.stem for path in EXAMPLES] == ["basic-auth", "kubernetes", "mutual-tls", "tls"]


@pytest.mark.parametrize("installed", EXAMPLES, ids=lambda path: path.stem, indirect=True)
def test_this_exporter_takes_it(installed: Path) -> None:
    assert Security.load(installed, lambda _: None).state.tls is not None


@pytest.mark.parametrize("installed", EXAMPLES, ids=lambda path: path.stem, indirect=True)
def test_promtool_takes_it(installed: Path) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed (Debian package prometheus)")
    run = subprocess.run([promtool, "check", "web-config", str(installed)], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "SUCCESS" in run.stdout + run.stderr


def test_the_password_is_the_one_that_the_example_says(authority: Authority) -> None:
    (path,) = (path for path in EXAMPLES if path.stem == "basic-auth")
    users = read_settings(path).users
    assert bcrypt.checkpw(b"change-me", users["scrape"].encode())
