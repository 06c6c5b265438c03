"""Certificates, and a daemon with a web configuration."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.end_to_end.processes import Daemon, daemon, wait_for
from tests.web.conftest import Authority

PATIENCE = 20.0  # seconds


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"), "tests")


@pytest.fixture(scope="session")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """An authority that nobody trusts."""
    return Authority(tmp_path_factory.mktemp("stranger"), "stranger")


class Curl:
    """The real one."""

    def __init__(self, folder: Path) -> None:
        found = shutil.which("curl")
        if found is None:
            pytest.skip("curl is not installed (Debian package curl)")
        self._body = folder / "curl.out"
        self._command = [found, "-sS", "--noproxy", "*", "-m", str(PATIENCE), "-o", str(self._body)]

    def __call__(self, url: str, *options: str) -> tuple[int, str]:
        """(exit status, the answer's status and HTTP version, or the error)."""
        self._body.write_text("")
        command = [*self._command, "-w", "%{http_code} %{http_version}", *options, url]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        return run.returncode, run.stdout if run.returncode == 0 else run.stderr

    @property
    def body(self) -> str:
        return self._body.read_text()


@pytest.fixture
def curl(tmp_path: Path) -> Curl:
    return Curl(tmp_path)


Serve = Callable[..., "contextlib.AbstractContextManager[Daemon]"]


@pytest.fixture
def serve(tmp_path: Path) -> Serve:
    """Runs a simulated node with this web configuration until the end of the with block."""

    @contextlib.contextmanager
    def start(web: str, ready: Callable[[Daemon], bool]) -> Iterator[Daemon]:
        config = tmp_path / "web.yml"
        config.write_text(web)
        arguments = ("--source", "simulated", "--metrics.profile", "full", "--web.config.file", str(config))
        with daemon(tmp_path, *arguments) as running:

            def answers() -> bool:
                if running.process.poll() is not None:
                    pytest.fail(f"the exporter ended:\n{running.log}")
                return ready(running)

            wait_for(answers, "ready")
            yield running

    return start
