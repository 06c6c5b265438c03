"""The unit: what systemd says of it, with each drop-in, and whether the exporter can live behind its walls."""

from __future__ import annotations

import contextlib
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import bcrypt
import pytest

from exporter.config.option import ENVIRONMENT_PREFIX
from exporter.config.options import OPTIONS
from tests.attribution.kubernetes.kubelet import Kubelet, pod
from tests.end_to_end.processes import free_port, parse, pick, wait_for
from tests.packaging import walls
from tests.packaging.helm import REPOSITORY
from tests.packaging.units import DROP_INS, NAME, SYSTEMD, TEXTFILE, UNIT, Unit
from tests.web.clients import get
from tests.web.conftest import Authority

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("deb")]

# Exposure by `systemd-analyze security`, 0 to 10, as docs/bare-metal.md states it.
SCORES = {"": 1.6, "process-io": 2.0, "kubernetes": 2.0, "profiling": 2.1}
TEXTFILE_SCORE = 1.6
PAGE = (REPOSITORY / "docs" / "bare-metal.md").read_text()


def analyze(root: Path, *arguments: str, unit: str = NAME) -> subprocess.CompletedProcess[str]:
    binary = shutil.which("systemd-analyze")
    if binary is None:
        pytest.skip("systemd-analyze is not installed (Debian package systemd)")
    command = [binary, f"--root={root}", "--no-pager", *arguments, unit]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def verify(root: Path, unit: str = NAME) -> str:
    """What systemd has against the unit."""
    done = analyze(root, "verify", "--man=no", "--recursive-errors=no", unit=unit)
    return done.stderr + (f"status {done.returncode}" if done.returncode else "")


def installed(folder: Path, drop_in: str) -> Path:
    """A root with the units, programs where it looks for them, and a drop-in; the root."""
    units = folder / "etc" / "systemd" / "system"
    units.mkdir(parents=True)
    shutil.copy(UNIT, units)
    shutil.copy(TEXTFILE, units)
    for name in ("usr/bin/honest-gpu-exporter", "bin/sh", "bin/rm"):
        program = folder / name
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text("")
        program.chmod(0o755)
    if drop_in:
        (units / f"{NAME}.d").mkdir()
        shutil.copy(DROP_INS[drop_in], units / f"{NAME}.d")
    return folder


def test_every_drop_in_has_a_score() -> None:
    assert {"", *DROP_INS} == SCORES.keys()


@pytest.mark.parametrize("drop_in", SCORES)
def test_the_score_is_the_one_that_is_stated(drop_in: str, tmp_path: Path) -> None:
    done = analyze(installed(tmp_path, drop_in), "security", "--offline=true")
    (score,) = re.findall(r"Overall exposure level for \S+: ([0-9.]+)", done.stdout)
    assert float(score) <= SCORES[drop_in]
    row = re.escape(f"`{drop_in}.conf`" if drop_in else "the unit alone")
    assert re.search(rf"^\| {row} .*\| {SCORES[drop_in]} \|$", PAGE, re.MULTILINE)


@pytest.mark.parametrize("drop_in", SCORES)
def test_systemd_understands_every_line(drop_in: str, tmp_path: Path) -> None:
    assert verify(installed(tmp_path, drop_in)) == ""


def test_the_unit_of_textfile_is_understood_and_has_the_score_that_is_stated(tmp_path: Path) -> None:
    root = installed(tmp_path, "")
    assert verify(root, TEXTFILE.name) == ""
    said = analyze(root, "security", "--offline=true", unit=TEXTFILE.name).stdout
    (score,) = re.findall(r"Overall exposure level for \S+: ([0-9.]+)", said)
    assert float(score) <= TEXTFILE_SCORE
    assert re.search(rf"^\| `{TEXTFILE.name}` .*\| {TEXTFILE_SCORE} \|$", PAGE, re.MULTILINE)


def test_the_unit_of_textfile_has_the_walls_of_the_daemon() -> None:
    """But for the one folder that it writes to, and the file that others read."""
    own = {"ExecStart", "ExecReload", "ExecStopPost", "Environment", "ReadWritePaths", "UMask"}
    lines = [
        [line for line in Unit.read(file).lines if line[0] == "Service" and line[1] not in own]
        for file in (UNIT, TEXTFILE)
    ]
    assert lines[0] == lines[1]
    unit = Unit.read(TEXTFILE)
    assert unit.one("Conflicts", "Unit") == NAME
    assert unit.one("UMask") == "0022"
    assert f"-{Path(unit.all('Environment')[-1].partition('=')[2]).parent}" == unit.one("ReadWritePaths")


def test_a_misspelt_line_is_seen(tmp_path: Path) -> None:
    """That the test above can fail: systemd only warns of what it does not know."""
    root = installed(tmp_path, "")
    file = root / "etc" / "systemd" / "system" / NAME
    file.write_text(file.read_text().replace("ProtectHome=", "ProtectHomes="))
    assert "ProtectHomes" in verify(root)


def test_every_option_that_the_files_name_exists() -> None:
    """Those that are commented out too."""
    variables = {option.variable for option in OPTIONS} | {f"{ENVIRONMENT_PREFIX}CONFIG"}
    texts = [path.read_text() for path in (UNIT, TEXTFILE, SYSTEMD / "default", *DROP_INS.values())]
    named = {name for text in texts for name in re.findall(rf"{ENVIRONMENT_PREFIX}[A-Z_]+\w", text)}
    assert named <= variables
    assert f"{ENVIRONMENT_PREFIX}CONFIG" in named


def test_the_examples_of_the_configuration_are_valid(tmp_path: Path) -> None:
    """Each of them, as it would be after taking its comment sign away."""
    text = (SYSTEMD / "config.yaml").read_text()
    examples = re.findall(r"^# (\w+: \{.*\})$", text, re.MULTILINE)
    assert len(examples) == 5
    for example in ("", *examples):
        file = tmp_path / "config.yaml"
        file.write_text(example.replace("/etc/honest-gpu-exporter/web.yaml", "/dev/null"))
        command = [sys.executable, "-m", "exporter", "--check-config", "--config", str(file)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, ""), example


@contextlib.contextmanager
def behind_walls(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """The exporter with the unit's system calls and sockets; any other call kills it."""
    reason = walls.missing()
    if reason:
        pytest.skip(reason)
    command = walls.behind(Unit.read(UNIT), [sys.executable, "-m", "exporter", *arguments])
    process = subprocess.Popen(
        command, cwd=REPOSITORY, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait(10)


@pytest.mark.parametrize(
    "code",
    [
        "os.nice(1)",
        "os.chown('/tmp', 0, 0)",
        "os.setuid(0)",
        "socket.socket(socket.AF_NETLINK)",
        "mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)",
    ],
)
def test_the_walls_of_this_test_hold(code: str) -> None:
    reason = walls.missing()
    if reason:
        pytest.skip(reason)
    program = f"import mmap, os, socket\nprint('began', flush=True)\n{code}\nprint('done')"
    command = walls.behind(Unit.read(UNIT), [sys.executable, "-c", program])
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.stdout == "began\n"
    assert done.returncode != 0


def test_it_serves_behind_the_walls(tmp_path: Path) -> None:
    """With everything on that opens files, sockets or libraries: TLS, a password, the kubelet, jobs, processes."""
    authority = Authority(tmp_path, "authority")
    identity = authority.issue("server")
    password = bcrypt.hashpw(b"s3cret", bcrypt.gensalt(4)).decode()
    web = tmp_path / "web.yaml"
    web.write_text(
        f"tls_server_config: {{cert_file: {identity.cert}, key_file: {identity.key}}}\n"
        f"basic_auth_users: {{scrape: '{password}'}}\n"
    )
    kubelet = Kubelet(tmp_path / "kubelet.sock")
    kubelet.pods([pod("train", "GPU-51313131-0000-0000-0000-000000000000")])
    kubelet.start()
    port = free_port()
    login = {"Authorization": "Basic c2NyYXBlOnMzY3JldA=="}
    options = ["--source", "simulated", "--source.gpus", "2", "--sampling.interval", "200ms"]
    options += ["--web.listen-address", f"127.0.0.1:{port}", "--web.config.file", str(web), "--collector.host"]
    options += ["--collector.kubernetes", "--kubernetes.pod-resources-socket", str(tmp_path / "kubelet.sock")]
    options += ["--collector.slurm", "--slurm.jobs-folder", str(tmp_path), "--collector.processes"]
    with behind_walls(*options) as process:

        def holds() -> bool:
            if process.poll() is not None:
                pytest.fail(f"ended with {process.returncode}: {process.communicate()[0]}")
            answer = get(("127.0.0.1", port), "/metrics", context=authority.client_context(), headers=login)
            series = parse(answer.body.decode())
            return pick(series, "honest_gpu_allocation_info", gpu="0", pod="train") == 1

        wait_for(holds, "the pod that the kubelet names")
        process.terminate()
        assert process.wait(10) == 0
    kubelet.stop()


def test_a_real_driver_is_read_behind_the_walls() -> None:
    if not Path("/dev/nvidiactl").exists():
        pytest.skip("no GPU")
    port = free_port()
    options = ["--source", "nvml", "--web.listen-address", f"127.0.0.1:{port}"]
    with behind_walls(*options) as process:

        def measures() -> bool:
            if process.poll() is not None:
                pytest.fail(f"ended with {process.returncode}: {process.communicate()[0]}")
            series = parse(get(("127.0.0.1", port), "/metrics").body.decode())
            return (pick(series, "honest_gpu_present_gpus") or 0) > 0

        wait_for(measures, "a GPU")
