"""The .deb: built twice, installed on a small Debian, run as its user, upgraded, removed and purged there."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from exporter.version import VERSION
from tests.end_to_end.processes import fetch, free_port, parse, pick, wait_for
from tests.packaging.debs import CONFIG, DEB_VERSION, HOME, OPTIONS, PACKAGE, Built, comment, field, newer, unpack
from tests.packaging.helm import REPOSITORY
from tests.packaging.machine import Machine
from tests.packaging.units import NAME, TEXTFILE

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("deb")]

JOBS = f"/run/{PACKAGE}/jobs"
SIMULATED_GPU = "GPU-51313131-0000-0000-0000-000000000001"  # the second one
WANTED = "/etc/systemd/system/multi-user.target.wants"
ENABLED = f"{WANTED}/{NAME}"
PAGE = (REPOSITORY / "docs" / "bare-metal.md").read_text()


@pytest.fixture(scope="module")
def machine(own_root: Path, built: Built, tmp_path_factory: pytest.TempPathFactory) -> Machine:
    del built  # skip before the long way
    made = Machine(tmp_path_factory.mktemp("machine") / "root", own_root)
    made.run("apt-get", "-q", "update")
    return made


def test_two_builds_are_the_same_file(built: Built) -> None:
    assert built.first.read_bytes() == built.second.read_bytes()
    assert field(built.first, "Version") == DEB_VERSION


def test_what_it_needs_is_the_python_it_was_built_with(built: Built) -> None:
    asked = "import sys; print(sys.version_info.minor)"
    minor = int(subprocess.run(["/usr/bin/python3", "-c", asked], capture_output=True, check=True).stdout)
    needed = field(built.first, "Depends").split(", ")
    assert {f"python3 (>= 3.{minor})", f"python3 (<< 3.{minor + 1})"} <= set(needed)


def test_what_it_brings(built: Built, tmp_path: Path) -> None:
    root = unpack(built.first, tmp_path / "root")
    home = root / HOME.lstrip("/")
    for path in root.rglob("*"):
        mode = path.lstat().st_mode
        assert path.is_symlink() or not mode & (stat.S_IWGRP | stat.S_IWOTH | stat.S_ISUID | stat.S_ISGID), path
    infos = home.glob("lib/python3.*/site-packages/*.dist-info")
    installed = {path.name.removesuffix(".dist-info").lower() for path in infos}
    locked = re.findall(r"^(\S+)==(\S+)$", (REPOSITORY / "requirements.lock").read_text(), re.MULTILINE)
    assert {f"{name.lower().replace('-', '_')}-{version}" for name, version in locked} <= installed
    assert {name.split("-")[0] for name in installed} >= {"grpcio", "protobuf", "honest_gpu_exporter"}
    assert not {"pip", "RECORD", "activate"} & {path.name for path in home.rglob("*")}, "dpkg keeps the record of files"
    sources = set(home.rglob("*.py"))
    compiled = {path.parents[1] / f"{path.name.split('.')[0]}.py" for path in home.rglob("*.pyc")}
    assert sources == compiled, "byte code that is missing would be written by root's first call, and stay"
    conffiles = (root / "DEBIAN" / "conffiles").read_text().split()
    assert {f"/{path.relative_to(root)}" for path in (root / "etc").rglob("*") if path.is_file()} == set(conffiles)


def test_its_life(machine: Machine, built: Built, tmp_path: Path) -> None:
    """One after the other, since each step starts where the one before it ended."""
    machine.install(built.first)
    assert machine.run(PACKAGE, "--version").stdout.split()[-1] == VERSION
    is_installed(machine)
    an_upgrade_replaces_what_nobody_edited(machine, newer(built.first, tmp_path, 1))
    configure(machine)
    is_scraped(machine)
    an_upgrade_keeps_what_was_edited(machine, newer(built.first, tmp_path, 2))
    is_scraped(machine)
    the_job_ends(machine)
    what_was_deleted_stays_deleted(machine, tmp_path / "2.deb")
    is_purged(machine)


def is_installed(machine: Machine) -> None:
    account = machine.run("getent", "passwd", PACKAGE).stdout.strip().split(":")
    assert 0 < int(account[2]) < 1000
    assert account[-2:] == ["/", "/usr/sbin/nologin"]
    assert os.readlink(machine.path(ENABLED)).endswith(f"/lib/systemd/system/{NAME}")  # in /usr from Debian 13 on
    assert machine.run("systemd-analyze", "verify", NAME).stderr == ""
    assert machine.run("systemd-analyze", "verify", TEXTFILE.name).stderr == ""
    assert [path.name for path in machine.path(WANTED).glob("honest*")] == [NAME], "textfile is not enabled"
    assert machine.run(PACKAGE, "--check-config", "--config", CONFIG).stdout == "the configuration is valid\n"


def configure(machine: Machine) -> None:
    """What an administrator does: both files are edited, a secret and a drop-in are added."""
    port = free_port()
    lines = f"HONEST_GPU_SOURCE=simulated\nHONEST_GPU_WEB_LISTEN_ADDRESS=127.0.0.1:{port}\n"
    with machine.path(OPTIONS).open("a") as file:
        file.write(f"HONEST_GPU_SOURCE_GPUS=2\n{lines}")
    machine.path(CONFIG).write_text("sampling: {interval: 200ms}\ncollector: {slurm: true}\n")
    machine.path(f"/etc/{PACKAGE}/web.yaml").write_text("")
    drop_ins = machine.path(f"/etc/systemd/system/{NAME}.d")
    drop_ins.mkdir()
    shutil.copy(machine.path(f"/usr/share/{PACKAGE}/drop-ins/process-io.conf"), drop_ins)
    (commands,) = re.findall(r"^## Slurm\n\n```sh\n(.*?)```$", PAGE, re.MULTILINE | re.DOTALL)
    machine.run("sh", "-euc", commands)
    assert stat.S_IMODE(machine.path(JOBS).stat().st_mode) == 0o755
    of_slurm(machine, "prolog")


def of_slurm(machine: Machine, script: str) -> None:
    """What slurmd runs before and after a job with a GPU."""
    job = {"SLURM_JOB_ID": "123", "SLURM_JOB_USER": "ada", "CUDA_VISIBLE_DEVICES": SIMULATED_GPU}
    machine.run("env", *(f"{key}={value}" for key, value in job.items()), f"/etc/slurm/{script}.d/{PACKAGE}")


def the_job_ends(machine: Machine) -> None:
    assert [path.name for path in machine.path(JOBS).iterdir()] == ["123"]
    of_slurm(machine, "epilog")
    assert list(machine.path(JOBS).iterdir()) == []


def is_scraped(machine: Machine) -> None:
    """The unit's command, as its user without privileges, with the options of both files."""
    address = re.findall(r"^HONEST_GPU_WEB_LISTEN_ADDRESS=(.*)$", machine.path(OPTIONS).read_text(), re.MULTILINE)[-1]
    with machine.started() as process:

        def series() -> dict[str, float]:
            if process.poll() is not None:
                pytest.fail(f"ended with {process.returncode}: {process.communicate()[0]}")
            return parse(fetch(f"http://{address}/metrics"))

        wait_for(lambda: pick(series(), "honest_gpu_sm_active_ratio", gpu="1") is not None, "a measurement")
        wait_for(
            lambda: pick(series(), "honest_gpu_allocation_info", gpu="1", job_id="123", user="ada") == 1, "the job"
        )
        assert pick(series(), "honest_gpu_present_gpus") == 2
        (running,) = processes_of(machine)
        assert set(re.findall(r"^Cap\w+:\s*(\S+)$", running, re.MULTILINE)) == {f"{0:016x}"}
        account = machine.run("id", "-u", PACKAGE).stdout.strip()
        assert re.findall(r"^Uid:\s*(.*)$", running, re.MULTILINE) == ["\t".join([account] * 4)]
        assert re.findall(r"^Groups:[ \t]*(.*?)[ \t]*$", running, re.MULTILINE) == [""]


def processes_of(machine: Machine) -> list[str]:
    """/proc/PID/status of the processes that run in the machine, without those that started them."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if os.readlink(process / "root") == str(machine.root):
                found.append((process / "status").read_text())
    return found


def an_upgrade_replaces_what_nobody_edited(machine: Machine, deb: Path) -> None:
    """Without a question; the files of the old version are gone."""
    machine.install(deb)
    assert machine.path(OPTIONS).read_text().startswith(comment(1))
    assert [path.name for path in machine.path("/etc/default").glob(f"{PACKAGE}*")] == [PACKAGE]
    (package,) = machine.path(HOME).glob("lib/python3.*/site-packages/exporter")
    assert (package / "renamed-1").exists()
    assert not (package / "py.typed").exists()


def an_upgrade_keeps_what_was_edited(machine: Machine, deb: Path) -> None:
    """dpkg asks about the file that both sides changed, and about no other; a restart is asked for, not forced."""
    edited = {path: machine.path(path).read_text() for path in (OPTIONS, CONFIG)}
    policy = machine.path("/usr/sbin/policy-rc.d")
    policy.write_text('#!/bin/sh\necho "$@" >>/tmp/asked\nexit 101\n')
    policy.chmod(0o755)
    machine.path("/run/systemd/system").mkdir(parents=True)  # as if systemd ran
    try:
        asked = machine.install(deb, answer="N\n")
    finally:
        machine.path("/run/systemd/system").rmdir()
    assert re.findall("^Configuration file '(.*)'$", asked, re.MULTILINE) == [OPTIONS]
    assert machine.path("/tmp/asked").read_text() == f"{NAME} restart\n"
    assert machine.run("dpkg-query", "-W", "-f", "${Status} ${Version}", PACKAGE).stdout == (
        f"install ok installed {DEB_VERSION}+2"
    )
    assert {path: machine.path(path).read_text() for path in edited} == edited
    assert machine.path(f"{OPTIONS}.dpkg-dist").read_text().startswith(comment(2))


def what_was_deleted_stays_deleted(machine: Machine, deb: Path) -> None:
    """A file of the configuration is the administrator's, its absence too."""
    machine.path(OPTIONS).unlink()
    machine.install(deb, "--reinstall")
    assert not machine.path(OPTIONS).exists()


def is_purged(machine: Machine) -> None:
    """Removal keeps what was configured; purge leaves the account, and what the administrator copied for Slurm."""
    machine.run("apt-get", "-y", "-q", "remove", PACKAGE)
    assert not machine.path(HOME).exists()
    assert machine.path(CONFIG).read_text().startswith("sampling")
    machine.run("apt-get", "-y", "-q", "purge", PACKAGE)
    left = {
        f"/{path.relative_to(machine.root)}"
        for folder in ("etc", "lib", "opt", "run", "usr", "var")
        for path in machine.path(folder).rglob("*honest*gpu*")
        if path.parent.name not in {"archives", "partial"}
    }
    copies = {f"/etc/slurm/{name}.d/{PACKAGE}" for name in ("prolog", "epilog")}
    assert left == {*copies, f"/etc/tmpfiles.d/{PACKAGE}.conf"}
    assert "honest" not in machine.run("dpkg-query", "-W").stdout
    assert machine.run("getent", "passwd", PACKAGE).returncode == 0
