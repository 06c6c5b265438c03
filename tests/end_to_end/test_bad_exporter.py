"""Another exporter that misbehaves: the daemon lives, says so, and no counter is lost."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.end_to_end.processes import Daemon, daemon, fetch, wait_for

pytestmark = pytest.mark.system

GOOD = """# TYPE DCGM_FI_DEV_GPU_UTIL gauge
DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-1",modelName="Tesla T4"} 91
DCGM_FI_PROF_DRAM_ACTIVE{gpu="0",UUID="GPU-1",modelName="Tesla T4"} 0.5
"""
ODD = GOOD.replace("91", "NaN").replace("0.5", "9223372036854775794") + "}{ what is this\n"


class Moody(ThreadingHTTPServer):
    """An exporter whose mood can be set."""

    daemon_threads = True

    def __init__(self) -> None:
        self.mood = "good"
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/metrics"


class _Handler(BaseHTTPRequestHandler):
    server: Moody

    def do_GET(self) -> None:
        mood = self.server.mood
        if mood == "hang":
            time.sleep(3)
            return
        html = mood == "html"
        self.send_response(500 if mood == "error" else 200)
        self.send_header("Content-Type", "text/html" if html else "text/plain")
        self.end_headers()
        self.wfile.write({"html": "<html>login</html>", "odd": ODD}.get(mood, GOOD).encode())

    def log_message(self, *_: object) -> None:
        """Quiet."""


@pytest.fixture
def exporter() -> Iterator[Moody]:
    server = Moody()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def busy_seconds(running: Daemon) -> float:
    return running.value("honest_gpu_busy_seconds_total") or 0.0


@pytest.mark.parametrize(
    ("mood", "said"),
    [("error", "500"), ("html", "a web page"), ("hang", "within")],
)
def test_a_failing_exporter_stops_the_counters_and_nothing_else(
    tmp_path: Path, exporter: Moody, mood: str, said: str
) -> None:
    with daemon(tmp_path, "--source=dcgm-exporter", f"--source.url={exporter.url}") as running:
        running.ready()
        wait_for(lambda: busy_seconds(running) > 0, "the first window")
        exporter.mood = mood
        wait_for(lambda: running.value("honest_gpu_up", source="dcgm-exporter") == 0, "up 0")
        before = busy_seconds(running)
        assert before > 0
        assert running.value("honest_gpu_busy_ratio") is None
        assert fetch(f"{running.url}/-/healthy").startswith("Healthy")
        assert said in running.log
        exporter.mood = "good"
        wait_for(lambda: busy_seconds(running) > before, "the counter goes on")


def test_odd_values_are_absent_and_counted(tmp_path: Path, exporter: Moody) -> None:
    exporter.mood = "odd"
    with daemon(tmp_path, "--source=dcgm-exporter", f"--source.url={exporter.url}") as running:
        running.ready()
        rejected = "honest_gpu_rejected_samples_total"
        wait_for(lambda: running.value(rejected, field="busy", reason="not_a_number"), "the rejection")
        assert running.value("honest_gpu_busy_ratio") is None
        assert running.value("honest_gpu_dram_active_ratio") is None
        assert running.value("honest_gpu_busy_seconds_total") in (None, 0.0)
        assert running.value(rejected, field="line", reason="unparseable")
