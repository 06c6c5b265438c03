"""``top``: the node in a terminal, and what it says when there is none."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.nodes import instances, snapshots
from exporter.cli.top_client import Unreachable, fetch, parse_target
from exporter.cli.top_view import PARTS, Style, Trail, render
from exporter.endpoints import endpoints
from exporter.page.api import document
from exporter.page.history import Freshness
from exporter.web.routes import Routes
from exporter.web.server import WebServer
from tests.end_to_end.processes import Daemon, daemon, free_port, serving, wait_for
from tests.page.nodes import Node
from tests.sources.scrape.servers import Answer, drips, reply, silent
from tests.sources.scrape.servers import serving as answering
from tests.web.samples import USERS, load

pytestmark = pytest.mark.system

FRESH = Freshness(0.1, False)
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def top(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "exporter", "top", *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=60, check=False, env={**os.environ, **environment}
    )


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with daemon(tmp_path_factory.mktemp("node"), "--source=simulated", "--source.gpus=2") as running:
        running.ready()
        wait_for(lambda: running.value("honest_gpu_busy_ratio", gpu="1") is not None, "a first number")
        yield running


def test_once_against_a_daemon(node: Daemon) -> None:
    done = top("--once", "--url", node.url)
    assert (done.returncode, done.stderr) == (0, "")
    assert "2 of 2 GPUs, source simulated up" in done.stdout
    assert "! SIMULATED" in done.stdout
    rows = [line for line in done.stdout.splitlines() if re.match(r"[01] +\d", line)]
    assert len(rows) == 2
    assert all("[" in row and "%" in row for row in rows)
    assert "working" in done.stdout
    assert not CONTROL.search(done.stdout), "no escape goes into a pipe"


def test_the_address_may_come_from_the_environment(node: Daemon) -> None:
    assert top("--once", HONEST_GPU_URL=node.url).returncode == 0


def test_a_terminal_without_unicode_gets_ascii(node: Daemon) -> None:
    done = top("--once", "--url", node.url, PYTHONIOENCODING="ascii")
    assert done.returncode == 0
    assert done.stdout.isascii()


def test_nobody_there_is_status_1_with_the_reason() -> None:
    url = f"http://user:secret@127.0.0.1:{free_port()}"
    done = top("--once", "--url", url)
    assert (done.returncode, done.stdout) == (1, "")
    assert "cannot be reached: Connection refused" in done.stderr
    assert "Is the exporter running there?" in done.stderr
    assert "secret" not in done.stderr
    assert top("--url", url).returncode == 1, "without --once too: nothing was ever shown"


def test_another_program_is_not_taken_for_an_exporter() -> None:
    with serving("# HELP x", "text/plain") as url:
        done = top("--once", "--url", url.removesuffix("/metrics"))
    assert done.returncode == 1
    assert "another program" in done.stderr


def test_a_document_of_another_version_is_refused() -> None:
    with serving('{"version": 2}', "application/json") as url:
        done = top("--once", "--url", url.removesuffix("/metrics"))
    assert done.returncode == 1
    assert "serves version 2" in done.stderr


@pytest.mark.parametrize(
    "url",
    ["127.0.0.1:9836", "ftp://node", "http://", "http://node:99999", "http://node/?x=1", "http://no de", "http://nöde"],
)
def test_an_address_that_is_none_is_status_2(url: str) -> None:
    done = top("--once", "--url", url)
    assert done.returncode == 2, done.stderr
    assert "--url" in done.stderr


def test_addresses() -> None:
    target = parse_target("https://al%40ice:p%3Ass@[::1]/prefix/")
    assert (target.scheme, target.host, target.port, target.path) == ("https", "::1", 443, "/prefix")
    assert target.credentials == "Basic YWxAaWNlOnA6c3M="
    assert str(target) == "https://[::1]:443/prefix"
    assert parse_target("http://node").port == 80


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize(
    "answer",
    [silent, drips(b"HTTP/1.1 200 OK\r\n", b"A: b\r\n"), drips(reply(b"", length=9999), b" ")],
    ids=["silent", "headers", "body"],
)
def test_a_server_that_drips_has_one_deadline_for_everything(answer: Answer, scheme: str) -> None:
    """A time-out for each piece would wait as long as the pieces come."""
    started = time.monotonic()
    with answering(answer) as address, pytest.raises(Unreachable) as raised:
        fetch(parse_target(f"{scheme}://{address}"), patience=0.3)
    assert time.monotonic() - started < 5
    if scheme == "http" or answer is silent:
        assert "did not answer completely within 0.3 s" in str(raised.value)


def test_basic_auth(tmp_path: Path) -> None:
    config = tmp_path / "web.yaml"
    config.write_text(USERS)
    content = Node([], 1, 3).published
    server = WebServer(["127.0.0.1:0"], Routes(endpoints(content, "/metrics")), security=load(config))
    server.start()
    try:
        address = f"127.0.0.1:{server.addresses[0][1]}"
        refused = top("--once", "--url", f"http://{address}")
        assert refused.returncode == 1
        assert "requires a user and a password" in refused.stderr
        assert top("--once", "--url", f"http://alice:wrong@{address}").returncode == 1
        assert top("--once", "--url", f"http://alice:s3cret@{address}").returncode == 0
    finally:
        server.stop()


def test_in_a_terminal_it_goes_on_and_gives_the_screen_back(node: Daemon) -> None:
    master, slave = pty.openpty()
    # a shell's background job ignores SIGINT, and so does what it starts
    command = ["env", "--default-signal=INT", sys.executable, "-m", "exporter", "top", "--url", node.url]
    environment = {**os.environ, "COLUMNS": "100", "LINES": "20", "TERM": "xterm"}
    environment.pop("NO_COLOR", None)
    process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, env=environment)
    os.close(slave)
    seen = b""
    try:
        seen = read_until(master, lambda text: text.count(b"\x1b[H") >= 2)
        process.send_signal(signal.SIGINT)
        seen += read_until(master, lambda text: b"\x1b[?1049l" in text)
        assert process.wait(20) == 0
    finally:
        process.kill()
        process.wait(20)
        os.close(master)
    assert seen.startswith(b"\x1b[?1049h\x1b[?25l")
    assert b"Traceback" not in seen
    frames = seen.split(b"\x1b[H")[1:3]
    assert all(frame.count(b"\n") < 20 for frame in frames), "a frame that is too high would scroll"
    assert b"\x1b[32m" in frames[0]


def read_until(master: int, enough: Any) -> bytes:
    seen, deadline = b"", time.monotonic() + 30
    while not enough(seen):
        ready, _, _ = select.select([master], [], [], max(0.0, deadline - time.monotonic()))
        assert ready, seen
        seen += os.read(master, 65536)
    return seen


def shown(made: Any, style: Style | None = None, **options: bool) -> str:
    return "\n".join(render(made, {}, style or Style(), **options))


def test_the_same_facts_as_on_the_page() -> None:
    text = shown(document(Node(["tiny-kernels"], 3, 90).snapshot, FRESH), Style(width=1000))
    assert "launch bound" in text
    assert "small kernels or launch gaps" in text
    assert "research/llama-finetune-7f9c-worker-0/trainer" in text
    assert "job 48213 alice physics; job 48217 alice physics" in text
    assert "held by nobody" in text
    assert "profiling ok" in text


def test_a_source_that_is_down_shows_no_number() -> None:
    text = shown(document(Node([], 2, 30, fails_after=20).snapshot, FRESH), Style(width=1000))
    assert "! Source simulated is down: the hostengine does not answer." in text
    assert "systemctl restart nvidia-dcgm" in text
    assert "not known" in text
    assert "%" not in text
    assert "fields no data" in text


def test_instances() -> None:
    text = shown(document(snapshots(instances(2, 3), 3)[-1], FRESH))
    assert re.search(r"^1/3 +\d+\.\d %", text, re.MULTILINE)
    assert re.search(r"^0 +- +-  \[ +not known +\]", text, re.MULTILINE)
    assert "per instance" in text


@pytest.mark.parametrize("width", [40, 80, 110, 200])
def test_nothing_is_wider_than_the_terminal(width: int) -> None:
    made = document(Node([], 4, 60).snapshot, FRESH)
    for line in render(made, {}, Style(width=width)):
        assert len(line) <= max(width, 47), line  # a row's numbers and bar are never cut


def test_a_name_cannot_steer_the_terminal() -> None:
    node = Node([], 1, 3)
    hostile: Any = document(node.snapshot, FRESH)
    hostile["gpus"][0]["model"] = "H100\x1b]0;title\x07\x9b2J"
    hostile["gpus"][0]["index"] = "0\x1b[2J"
    hostile["gpus"][0]["state_reason"] = "a\x1b[31mb"
    hostile["gpus"][0]["holders"][0]["pod"] = "p\r\n\x1b[H"
    hostile["warnings"] = ["w\x1b[2J"]
    hostile["problems"] = [{"gpu": None, "what": "x\x1b[2J", "why": "y", "remedy": "z\x07"}]
    hostile["sources"][0]["name"] = "s\x1b[2J"
    hostile["exporter_version"] = "v\x1b[2J"
    assert not CONTROL.search(shown(hostile).replace("\n", ""))


@given(st.lists(st.floats(0.0, 1.0), min_size=5, max_size=5).filter(lambda shares: sum(shares) > 0), st.booleans())
def test_a_bar_is_full_and_in_proportion(shares: Sequence[float], wide: bool) -> None:
    style = Style(width=120 if wide else 80)
    parts = {part: share / sum(shares) for part, share in zip(PARTS, shares, strict=True)}
    made: Any = document(snapshots(instances(1, 1), 1)[-1], FRESH)
    made["gpus"] = [{**made["gpus"][1], "parts": parts}]
    row = next(line for line in render(made, {}, style, details=False) if line.startswith("0/1"))
    bar = re.search(r"\[(.*?)\]", row)
    assert bar
    assert len(bar[1]) == style.bar
    for part, share in parts.items():
        assert abs(bar[1].count(style.fills[part]) - share * style.bar) <= 1 + 1e-9


def test_the_trail_is_of_ten_minutes_and_has_gaps() -> None:
    trail = Trail()
    history = {"timestamps": [1000.0 + n for n in range(600)], "gpus": {"a": {"sm": [0.25] * 300 + [None] * 300}}}
    trail.add(history)
    assert trail.since == 1599.0
    assert trail.cells("a", 4) == [0.25, 0.25, None, None]
    trail.add({"timestamps": [1899.0], "gpus": {"a": {"sm": [1.0]}}})
    assert trail.cells("a", 2) == [None, 1.0]
    assert trail.cells("b", 2) == [None, None]
    trail.add({"timestamps": [500.0], "gpus": {"a": {"sm": [0.5]}}})  # the exporter's clock was set back
    assert trail.cells("a", 2) == [None, 0.5]
