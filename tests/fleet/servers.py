"""What a large site runs, from docs/examples/scaling: agents, the central Prometheus, VictoriaMetrics."""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import urllib.parse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.processes import fetch, free_port, wait_for


class Server:
    """Answers PromQL, at ``address`` (host:port)."""

    def __init__(self, address: str, process: subprocess.Popen[bytes]) -> None:
        self.address = address
        self.process = process

    def get(self, path: str, **parameters: str) -> Any:
        """``data`` of an answer of the API."""
        return json.loads(fetch(f"http://{self.address}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"))["data"]

    def query(self, expression: str) -> list[tuple[Mapping[str, str], float]]:
        """An instant query: (labels, value) a series."""
        found = self.get("query", query=expression)["result"]
        return [(series["metric"], float(series["value"][1])) for series in found]

    def stop(self) -> None:
        self.process.kill()
        self.process.wait(10)


def binary(name: str, package: str) -> str:
    """Its path; skips where it is not installed."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed (Debian package {package})")
    return found


@contextlib.contextmanager
def running(folder: Path, address: str, ready: str, command: Sequence[str]) -> Iterator[Server]:
    """Until the end of the block; ``ready``: the path that answers 200 when it is."""
    log_file = folder / f"{address.replace(':', '-')}.log"
    with log_file.open("w") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        try:
            wait_for(lambda: fetch(f"http://{address}{ready}"), f"{command[0]} is ready: {log_file.read_text()}")
            yield Server(address, process)
        finally:
            process.kill()


def prometheus(
    folder: Path, name: str, config: Mapping[str, Any], address: str, *options: str
) -> contextlib.AbstractContextManager[Server]:
    """With this configuration, as an agent or not."""
    path = folder / f"{name}.yml"
    path.write_text(json.dumps(config))
    command = [binary("prometheus", "prometheus"), f"--config.file={path}", f"--web.listen-address={address}"]
    return running(folder, address, "/-/ready", [*command, *options])


def victoria_metrics(folder: Path, address: str) -> contextlib.AbstractContextManager[Server]:
    """``latencyOffset``: otherwise it shows nothing of the last 30 s."""
    command = [binary("victoria-metrics", "victoria-metrics"), f"-httpListenAddr={address}"]
    options = [f"-storageDataPath={folder / 'victoria'}", "-retentionPeriod=2y", "-search.latencyOffset=1s"]
    return running(folder, address, "/health", [*command, *options])


def here() -> str:
    """A free address."""
    return f"127.0.0.1:{free_port()}"
