"""The real daemon and a real Prometheus as processes on loopback."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socket import socket

import pytest


def free_port() -> int:
    """A TCP port that nobody listens on now."""
    with socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def fetch(url: str, headers: Mapping[str, str] | None = None, timeout: float = 5.0) -> str:
    """The body of a 200 answer."""
    with urllib.request.urlopen(urllib.request.Request(url, headers=dict(headers or {})), timeout=timeout) as answer:
        return str(answer.read().decode())


def wait_for(condition: object, what: str, seconds: float = 30.0) -> None:
    """Until ``condition()`` is true; fails with ``what`` after that many seconds."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError, urllib.error.URLError):
            if condition():  # type: ignore[operator]
                return
        time.sleep(0.05)
    pytest.fail(f"not within {seconds} s: {what}")


class Daemon:
    """A running exporter."""

    def __init__(self, arguments: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._log = folder / f"exporter-{self.port}.log"
        self._out = folder / f"exporter-{self.port}.out"
        command = [sys.executable, "-m", "exporter", "--web.listen-address", f"127.0.0.1:{self.port}", *arguments]
        with self._log.open("w") as log, self._out.open("w") as out:
            self.process = subprocess.Popen(
                command, stdout=out, stderr=log, cwd=folder, env={**os.environ, **(environment or {})}
            )

    @property
    def log(self) -> str:
        return self._log.read_text()

    @property
    def out(self) -> str:
        return self._out.read_text()

    def ready(self) -> Daemon:
        """Wait for the first window."""

        def answers() -> bool:
            if self.process.poll() is not None:
                pytest.fail(f"the exporter ended with {self.process.returncode}:\n{self.log}")
            return fetch(f"{self.url}/-/ready") == "Ready.\n"

        wait_for(answers, f"ready\n{self.log}")
        return self

    def metrics(self) -> dict[str, float]:
        """Series -> value."""
        return parse(fetch(f"{self.url}/metrics"))

    def value(self, name: str, **labels: str) -> float | None:
        """The value of the one series with these labels; None when absent."""
        return pick(self.metrics(), name, **labels)

    def stop(self) -> float:
        """SIGTERM; the seconds it took."""
        started = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(10)
        return time.monotonic() - started


def parse(text: str) -> dict[str, float]:
    """Series -> value of a text exposition."""
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return {series: float(value) for series, value in (line.rsplit(" ", 1) for line in lines)}


def pick(series: Mapping[str, float], name: str, **labels: str) -> float | None:
    """The value of the one series of ``name`` that has these labels among its own."""
    wanted = {f'{key}="{value}"' for key, value in labels.items()}
    found = [
        value
        for key, value in series.items()
        if key.split("{")[0] == name and wanted <= set(re.findall(r'\w+="[^"]*"', key))
    ]
    assert len(found) <= 1, f"{name} {labels} is {len(found)} series"
    return found[0] if found else None


@contextlib.contextmanager
def daemon(folder: Path, *arguments: str, environment: Mapping[str, str] | None = None) -> Iterator[Daemon]:
    """A daemon that is stopped at the end."""
    running = Daemon(arguments, folder, environment)
    try:
        yield running
    finally:
        if running.process.poll() is None:
            running.process.kill()
        running.process.wait(10)


@contextlib.contextmanager
def serving(body: str, content_type: str = "text/plain; version=0.0.4") -> Iterator[str]:
    """Another exporter: serves ``body`` at the URL that it yields."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", content_type)
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_: object) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/metrics"
    finally:
        server.shutdown()
        server.server_close()


class Prometheus:
    """A real Prometheus scraping every second."""

    def __init__(self, targets: Sequence[str], folder: Path, scrape: Mapping[str, object] | None = None) -> None:
        """``scrape``: more of its scrape configuration, such as tls_config."""
        binary = shutil.which("prometheus")
        if binary is None:
            pytest.skip("prometheus is not installed (Debian package prometheus)")
        self.url = f"http://127.0.0.1:{free_port()}"
        config = folder / "prometheus.yml"
        addresses = [target.removeprefix("http://") for target in targets]
        config.write_text(
            json.dumps(
                {
                    "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
                    "scrape_configs": [
                        {"job_name": "honest", "static_configs": [{"targets": addresses}], **(scrape or {})}
                    ],
                }
            )
        )
        with (folder / "prometheus.log").open("w") as log:
            self.process = subprocess.Popen(
                [
                    binary,
                    f"--config.file={config}",
                    f"--storage.tsdb.path={folder / 'tsdb'}",
                    f"--web.listen-address={self.url.removeprefix('http://')}",
                ],
                stdout=log,
                stderr=log,
            )

    def query(self, expression: str) -> list[tuple[dict[str, str], float]]:
        """An instant query: (labels, value) per series."""
        url = f"{self.url}/api/v1/query?{urllib.parse.urlencode({'query': expression})}"
        answer = json.loads(fetch(url))
        return [(series["metric"], float(series["value"][1])) for series in answer["data"]["result"]]

    def one(self, expression: str) -> float:
        """The value of the only series."""
        (found,) = self.query(expression)
        return found[1]


@contextlib.contextmanager
def prometheus(folder: Path, *targets: str, scrape: Mapping[str, object] | None = None) -> Iterator[Prometheus]:
    """A Prometheus that is stopped at the end."""
    running = Prometheus(targets, folder, scrape)
    try:
        wait_for(lambda: fetch(f"{running.url}/-/ready"), "Prometheus is ready")
        yield running
    finally:
        running.process.kill()
        running.process.wait(10)
