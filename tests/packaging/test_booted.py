"""The .deb where systemd runs: its unit is started, with its walls and drop-ins, reloaded, upgraded, ended."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.end_to_end.processes import fetch, free_port, parse, pick, wait_for
from tests.packaging import images
from tests.packaging.booted import Booted, NotBooted, boot
from tests.packaging.debs import CONFIG, OPTIONS, PACKAGE, Built, newer
from tests.packaging.helm import REPOSITORY
from tests.packaging.machine import Machine
from tests.packaging.units import NAME, TEXTFILE

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("deb")]

PAGE = (REPOSITORY / "docs" / "bare-metal.md").read_text()
SCORE = 1.6  # as docs/bare-metal.md states it
NONE = f"{0:016x}"
CAPABILITIES = {"": NONE, "process-io": f"{1 << 19:016x}", "kubernetes": NONE, "profiling": f"{1 << 21:016x}"}


@pytest.fixture(scope="module")
def booted(own_root: Path, built: Built, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Booted]:
    """With the package, before anybody configured it."""
    reason = images.missing()
    if reason:
        pytest.skip(reason)
    machine = Machine(tmp_path_factory.mktemp("booted") / "root", own_root)
    machine.run("apt-get", "-q", "update")
    try:
        with boot(machine) as running:
            running.install(built.first)
            yield running
    except NotBooted as error:
        pytest.skip(str(error))
    finally:
        shutil.rmtree(machine.root)


@pytest.fixture(scope="module")
def port() -> int:
    return free_port()


@pytest.fixture(scope="module")
def configured(booted: Booted, port: int) -> Booted:
    """Simulated GPUs, restarted."""
    variables = {"HONEST_GPU_SOURCE": "simulated", "HONEST_GPU_WEB_LISTEN_ADDRESS": f"127.0.0.1:{port}"}
    booted.write(OPTIONS, "".join(f"{name}={value}\n" for name, value in variables.items()))
    booted.write(CONFIG, "sampling: {interval: 200ms}\n")
    booted.run("systemctl", "restart", NAME)
    return booted


def is_scraped(port: int) -> None:
    def measured() -> bool:
        return pick(parse(fetch(f"http://127.0.0.1:{port}/metrics")), "honest_gpu_sm_active_ratio", gpu="0") is not None

    wait_for(measured, "a measurement")


def has(booted: Booted, name: str, *values: str) -> Callable[[], bool]:
    return lambda: booted.property(name) in values


def status(booted: Booted, key: str) -> str:
    (found,) = re.findall(rf"^{key}:\s*(.*?)\s*$", booted.process("status"), re.MULTILINE)
    return str(found)


def test_without_a_driver_it_says_so_and_is_tried_again(booted: Booted) -> None:
    assert booted.property("UnitFileState") == "enabled"
    wait_for(has(booted, "SubState", "auto-restart"), "another try")
    assert "libnvidia-ml.so.1" in booted.journal()


def test_it_runs_behind_its_walls(configured: Booted, port: int) -> None:
    is_scraped(port)
    account = configured.run("id", "-u", PACKAGE)
    assert status(configured, "Uid").split() == [account] * 4
    assert {status(configured, key) for key in ("CapEff", "CapPrm", "CapBnd", "CapAmb")} == {NONE}
    assert status(configured, "NoNewPrivs") == "1"
    assert status(configured, "Seccomp") == "2"
    mounts = [line.split() for line in configured.process("mountinfo").splitlines()]
    options = {mount[4]: mount[5].split(",") for mount in mounts}
    assert "ro" in options["/"]
    assert "ro" in options["/home"]
    assert {mount[4] for mount in mounts if "systemd-private-" in mount[3]} == {"/tmp", "/var/tmp"}
    said = configured.run("systemd-analyze", "security", "--no-pager", NAME)
    (score,) = re.findall(r"Overall exposure level for \S+: ([0-9.]+)", said)
    assert float(score) <= SCORE


def test_the_unit_of_textfile_takes_its_place_and_leaves_no_dead_numbers(configured: Booted, port: int) -> None:
    """With the commands of the docs; the daemon ends, the file is written, and is gone after SIGKILL too."""
    folder = "/var/lib/prometheus/node-exporter"
    file = f"{folder}/honest_gpu.prom"
    configured.run("mkdir", "-p", folder)
    (commands,) = re.findall(r"^```sh\n(chgrp .*?)```$", PAGE, re.MULTILINE | re.DOTALL)
    configured.run("sh", "-euc", commands)
    assert configured.run("systemctl", "is-active", NAME, check=False) == "inactive"
    try:
        wait_for(lambda: "honest_gpu_sm_active_ratio{" in configured.run("cat", file, check=False), "the file")
        assert configured.run("stat", "--format=%U %a", file) == f"{PACKAGE} 644"
        configured.run("systemctl", "kill", "--signal=KILL", TEXTFILE.name)
        wait_for(lambda: file not in configured.run("find", folder), "the end of the file")
        configured.run("systemctl", "start", TEXTFILE.name)
        wait_for(lambda: file in configured.run("find", folder), "the next file")
        configured.run("systemctl", "start", NAME)  # each stops the other
        is_scraped(port)
        assert configured.run("systemctl", "is-active", TEXTFILE.name, check=False) == "inactive"
        assert file not in configured.run("find", folder)
    finally:
        configured.run("systemctl", "disable", "--now", TEXTFILE.name)
        configured.run("systemctl", "enable", "--now", NAME)


def test_a_reload_is_heard(configured: Booted, port: int) -> None:
    before = configured.property("MainPID")
    configured.write(CONFIG, "sampling: {interval: 200ms}\nmetrics: {exclude: [honest_gpu_busy_ratio]}\n")
    configured.run("systemctl", "reload", NAME)
    wait_for(lambda: "configuration reloaded" in configured.journal(), "the reload")
    assert "honest_gpu_busy_ratio{" not in fetch(f"http://127.0.0.1:{port}/metrics")
    assert configured.property("MainPID") == before


def test_a_wrong_configuration_is_not_tried_again(configured: Booted, port: int) -> None:
    configured.write(CONFIG, "sampling: {intervall: 1s}\n")
    configured.run("systemctl", "restart", NAME)
    wait_for(has(configured, "ActiveState", "failed"), "the end")
    assert configured.property("ExecMainStatus") == "2"
    assert configured.property("NRestarts") == "0"
    assert "intervall" in configured.journal()
    configured.write(CONFIG, "sampling: {interval: 200ms}\n")
    configured.run("systemctl", "restart", NAME)
    is_scraped(port)


@pytest.mark.parametrize("drop_in", [name for name in CAPABILITIES if name])
def test_each_drop_in_gives_what_it_says_and_no_more(configured: Booted, port: int, drop_in: str) -> None:
    folder = f"/etc/systemd/system/{NAME}.d"
    configured.run("install", "-D", "-m", "644", "-t", folder, f"/usr/share/{PACKAGE}/drop-ins/{drop_in}.conf")
    configured.run("systemctl", "daemon-reload")
    try:
        configured.run("systemctl", "restart", NAME)
        is_scraped(port)
        for key in ("CapEff", "CapBnd", "CapAmb"):
            assert status(configured, key) == CAPABILITIES[drop_in]
        account = "0" if drop_in == "kubernetes" else configured.run("id", "-u", PACKAGE)
        assert status(configured, "Uid").split() == [account] * 4
        assert status(configured, "NoNewPrivs") == "1"
    finally:
        configured.run("rm", "-r", folder)
        configured.run("systemctl", "daemon-reload")
        configured.run("systemctl", "restart", NAME)


def test_an_upgrade_restarts_it_and_a_removal_stops_it(
    configured: Booted, built: Built, port: int, tmp_path: Path
) -> None:
    is_scraped(port)
    before = configured.property("MainPID")
    configured.install(newer(built.first, tmp_path, 1))
    is_scraped(port)
    assert configured.property("MainPID") not in (before, "0")
    configured.run("apt-get", "-y", "-q", "purge", PACKAGE)
    assert configured.property("LoadState") == "not-found"
    with pytest.raises(OSError, match="refused"):
        fetch(f"http://127.0.0.1:{port}/-/healthy")
