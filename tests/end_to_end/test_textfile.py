"""The textfile command, read by a real node_exporter that a real Prometheus scrapes."""

from __future__ import annotations

import contextlib
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.end_to_end.processes import fetch, free_port, parse, pick, prometheus, serving, wait_for
from tests.packaging.helm import REPOSITORY

pytestmark = pytest.mark.system

SIMULATED = ("--source=simulated", "--source.gpus=2", "--sampling.interval=200ms")
NAME = "honest_gpu_observed_seconds_total"
OBSERVED = f'{NAME}{{gpu="0",of="sm"}}'
PAGE = (REPOSITORY / "docs" / "bare-metal.md").read_text()


def command(path: Path, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "exporter", "textfile", f"--output={path}", *arguments]


def run(path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """To its end."""
    return subprocess.run(command(path, *arguments), capture_output=True, text=True, timeout=60, check=False)


@contextlib.contextmanager
def writer(path: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Writes every second until the end of the block."""
    started = command(path, "--interval=1s", *SIMULATED, *arguments)
    process = subprocess.Popen(started, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate(timeout=10)


@contextlib.contextmanager
def node_exporter(folder: Path, log: Path) -> Iterator[str]:
    """One that reads ``folder``; its URL."""
    binary = shutil.which("prometheus-node-exporter") or shutil.which("node_exporter")
    if binary is None:
        pytest.skip("node_exporter is not installed (Debian package prometheus-node-exporter)")
    address = f"127.0.0.1:{free_port()}"
    url = f"http://{address}"
    started = [binary, f"--web.listen-address={address}", f"--collector.textfile.directory={folder}"]
    with log.open("w") as file:
        process = subprocess.Popen(started, stdout=file, stderr=file)
    try:
        wait_for(lambda: fetch(f"{url}/metrics"), "node_exporter answers")
        yield url
    finally:
        process.kill()
        process.wait(10)


def file_of(tmp_path: Path) -> Path:
    (tmp_path / "textfiles").mkdir()
    return tmp_path / "textfiles" / "honest_gpu.prom"


def ours(series: Mapping[str, float]) -> set[tuple[str, ...]]:
    """Name and labels of each of our series. node_exporter writes the label le last, and 1 for 1.0."""
    found = set()
    for text in series:
        name, *labels = re.findall(r'^\w+|\w+="(?:[^"\\]|\\.)*"', text)
        if name.startswith("honest_gpu_"):
            found.add((name, *sorted(re.sub(r'^le="(.*)\.0"$', r'le="\1"', label) for label in labels)))
    return found


def alert(name: str) -> str:
    """The expression in the docs, with 3 s in place of its threshold and the job of these tests."""
    (found,) = re.findall(rf"- alert: {name}\b.*\n +expr: (.*)$", PAGE, re.MULTILINE)
    return re.sub(r"> \d+$", "> 3", found).replace('job="node"', 'job="honest"')


def test_node_exporter_shows_what_was_written_and_prometheus_stores_it(tmp_path: Path) -> None:
    path = file_of(tmp_path)
    with (
        node_exporter(path.parent, tmp_path / "node.log") as url,
        prometheus(tmp_path, url) as stored,
    ):
        with writer(path) as process:
            wait_for(path.exists, "the first write")
            written = parse(path.read_text())
            assert pick(written, "honest_gpu_sm_active_ratio", gpu="1") is not None, "the first file has gauges"
            assert len(written) == len(ours(written)), "node_exporter has process_* and python_info of its own"
            wait_for(
                lambda: ours(parse(fetch(f"{url}/metrics"))) >= ours(written), "all series on node_exporter's page"
            )
            page = parse(fetch(f"{url}/metrics"))
            assert page["node_textfile_scrape_error"] == 0

            def rate() -> bool:
                found = stored.query(f"rate({OBSERVED}[10s])")
                return bool(found) and found[0][1] == pytest.approx(1.0, abs=0.3)

            wait_for(rate, "one second observed each second")
            assert stored.one('honest_gpu_build_info{job="honest"}') == 1
            assert stored.query(alert("HonestGpuTextfileOld")) == []
            assert stored.query(alert("HonestGpuTextfileMissing")) == []
            process.send_signal(signal.SIGTERM)
            assert process.wait(10) == 0
        assert list(path.parent.iterdir()) == [], "removed at a clean end"
        assert ours(parse(fetch(f"{url}/metrics"))) == set()
        wait_for(lambda: stored.query(alert("HonestGpuTextfileMissing")), "the alert for the file that is gone")
        assert stored.query(OBSERVED) == [], "stale at once: no number lives on for Prometheus' five minutes"


def test_after_sigkill_the_numbers_stay_the_alert_fires_and_the_next_writer_starts_from_zero(tmp_path: Path) -> None:
    path = file_of(tmp_path)
    with (
        node_exporter(path.parent, tmp_path / "node.log") as url,
        prometheus(tmp_path, url) as stored,
    ):
        with writer(path) as process:
            wait_for(lambda: stored.query(f"{OBSERVED} > 3"), "some seconds observed")
            process.kill()
            process.wait(10)
        left = parse(path.read_text())
        wait_for(lambda: stored.query(alert("HonestGpuTextfileOld")), "the alert for the file that is old")
        assert parse(path.read_text()) == left
        with writer(path, "--sampling.interval=10s", "--interval=10s"):  # killed before its first write
            wait_for(lambda: not path.exists(), "the old file is removed at the start of the next writer", seconds=15)
        with writer(path):
            wait_for(path.exists, "the first write of the next writer")
            begun, before = (pick(each, NAME, gpu="0", of="sm") or 0 for each in (parse(path.read_text()), left))
            assert 0 < begun < before
            wait_for(lambda: stored.one(f"resets({OBSERVED}[1m])") == 1, "a reset that rate() handles")
            assert stored.query(alert("HonestGpuTextfileOld")) == []


def test_once_writes_what_stands_by_itself_and_no_counters(tmp_path: Path) -> None:
    path = file_of(tmp_path)
    done = run(path, "--once", *SIMULATED)
    assert done.returncode == 0, done.stderr
    types = dict(re.findall(r"^# TYPE (\S+) (\w+)$", path.read_text(), re.MULTILINE))
    assert set(types.values()) == {"gauge"}
    written = parse(path.read_text())
    for gpu in ("0", "1"):
        assert pick(written, "honest_gpu_sm_active_ratio", gpu=gpu) is not None
        assert pick(written, "honest_gpu_busy_ratio", gpu=gpu) is not None
    with node_exporter(path.parent, tmp_path / "node.log") as url:
        page = parse(fetch(f"{url}/metrics"))
        assert ours(page) == ours(written)
        assert page["node_textfile_scrape_error"] == 0


def test_once_fails_with_the_reason_when_nothing_can_be_read_and_leaves_no_old_file(tmp_path: Path) -> None:
    path = file_of(tmp_path)
    path.write_text("honest_gpu_of_an_earlier_run 1\n")
    source = ("--source=dcgm-exporter", f"--source.url=http://127.0.0.1:{free_port()}/metrics")
    done = run(path, "--once", "--sampling.interval=100ms", *source)
    assert done.returncode == 1
    assert "nothing could be read: source dcgm-exporter: nothing listens on 127.0.0.1" in done.stderr
    assert list(path.parent.iterdir()) == []


def test_a_source_that_goes_away_stops_the_gauges_in_the_file(tmp_path: Path) -> None:
    path = file_of(tmp_path)
    body = (
        "# TYPE DCGM_FI_PROF_SM_ACTIVE gauge\n"
        'DCGM_FI_PROF_SM_ACTIVE{gpu="0",UUID="GPU-51313131-0000-0000-0000-000000000001",modelName="NVIDIA H100"} 0.5\n'
    )
    with contextlib.ExitStack() as stack:
        with serving(body) as url:
            arguments = ("--interval=1s", "--sampling.interval=200ms", "--source=dcgm-exporter", f"--source.url={url}")
            process = subprocess.Popen(command(path, *arguments), stderr=subprocess.DEVNULL)
            stack.callback(process.wait, 10)
            stack.callback(process.kill)
            wait_for(path.exists, "the first write")
            assert pick(parse(path.read_text()), "honest_gpu_sm_active_ratio", gpu="0") == 0.5
        wait_for(lambda: pick(parse(path.read_text()), "honest_gpu_up", source="dcgm-exporter") == 0, "the loss")
        wait_for(lambda: pick(parse(path.read_text()), "honest_gpu_sm_active_ratio", gpu="0") is None, "no gauge")
        assert (pick(parse(path.read_text()), NAME, gpu="0", of="sm") or 0) > 0, "its counters stay"


def test_a_folder_that_goes_away_is_logged_and_written_again_when_it_is_back(tmp_path: Path) -> None:
    path = file_of(tmp_path)
    with writer(path) as process:
        wait_for(path.exists, "the first write")
        path.parent.rename(tmp_path / "away")
        assert process.stderr is not None
        lines = iter(process.stderr.readline, "")
        assert any(f"{path} cannot be written: No such file or directory" in line for line in lines)
        path.parent.mkdir()
        assert any(f"{path} is written again" in line for line in lines)
        assert parse(path.read_text())
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
        assert "Traceback" not in process.stderr.read()
