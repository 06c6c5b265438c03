"""Which profilers run here, as `doctor` names them."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from exporter.cli.profilers import HOSTENGINE, asked, running

LISTEN = """
import socket, sys, time
where = sys.argv[1]
made = socket.socket(socket.AF_UNIX if where.startswith("/") else socket.AF_INET)
made.bind(where if where.startswith("/") else ("127.0.0.1", int(where)))
made.listen()
print(made.getsockname(), flush=True)
time.sleep(60)
"""


@pytest.fixture
def hostengine(tmp_path: Path) -> Path:
    """A program of that name: the kernel names a process after its file."""
    program = tmp_path / HOSTENGINE
    shutil.copy(os.path.realpath(sys.executable), program)
    return program


def started(program: Path, where: str) -> tuple[subprocess.Popen[str], str]:
    environment = os.environ | {"PYTHONHOME": sys.base_prefix, "LD_LIBRARY_PATH": f"{sys.base_prefix}/lib"}
    command = [str(program), "-c", LISTEN, where]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    assert process.stdout is not None
    return process, process.stdout.readline().strip()


@pytest.mark.parametrize("kind", ["tcp", "unix"])
def test_a_hostengine_is_named_with_its_address(hostengine: Path, kind: str) -> None:
    where = "0" if kind == "tcp" else str(hostengine.parent / "engine.sock")
    process, name = started(hostengine, where)
    try:
        address = f"127.0.0.1:{name.rpartition(' ')[2].rstrip(')')}" if kind == "tcp" else f"unix:{where}"
        assert f"{HOSTENGINE} (pid {process.pid}, at {address})" in running()
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize(
    ("options", "address"),
    [
        ((), "127.0.0.1:5555"),
        (("-n", "-p", "6000"), "127.0.0.1:6000"),
        (("--port=6000", "--bind-interface", "ALL"), "*:6000"),
        (("-b", "10.0.0.7"), "10.0.0.7:5555"),
        (("-d", "/run/dcgm.sock", "-n"), "unix:/run/dcgm.sock"),
        (("--domain-socket", "-n"), "unix:/tmp/nv-hostengine"),
    ],
)
def test_the_address_that_a_command_line_asks_for(options: tuple[str, ...], address: str) -> None:
    assert list(asked((HOSTENGINE, *options))) == [address]
