"""A real Alertmanager, configured as docs/examples/alertmanager.yml says."""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.alerting.compressed import example
from tests.end_to_end.processes import fetch, free_port, wait_for


class Alertmanager:
    """``address``: host:port, for Prometheus."""

    def __init__(self, address: str) -> None:
        self.address = address

    def alerts(self) -> list[tuple[Mapping[str, str], bool]]:
        """Labels of the alerts that have not ended, and whether another one holds them back."""
        found: list[Any] = json.loads(fetch(f"http://{self.address}/api/v2/alerts"))
        return [(alert["labels"], bool(alert["status"]["inhibitedBy"])) for alert in found]

    def tell(self, labels: Mapping[str, str], ended: bool = False) -> None:
        """An alert of the test's own, that begins or ends now."""
        now = datetime.now(timezone.utc).isoformat()
        body = json.dumps([{"labels": dict(labels), "startsAt": now, **({"endsAt": now} if ended else {})}])
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"http://{self.address}/api/v2/alerts", body.encode(), headers)
        urllib.request.urlopen(request, timeout=5).close()


@contextlib.contextmanager
def alertmanager(folder: Path, messages: str) -> Iterator[Alertmanager]:
    """Sends to this URL instead of the example's; stopped at the end."""
    binary = shutil.which("prometheus-alertmanager") or shutil.which("alertmanager")
    if binary is None:
        pytest.skip("alertmanager is not installed (Debian package prometheus-alertmanager)")
    config = yaml.safe_dump(example("alertmanager.yml")).replace("http://messages.example", messages)
    assert messages in config
    (folder / "alertmanager.yml").write_text(config)
    address = f"127.0.0.1:{free_port()}"
    command = [
        binary,
        f"--config.file={folder / 'alertmanager.yml'}",
        f"--storage.path={folder / 'alertmanager'}",
        f"--web.listen-address={address}",
        "--cluster.listen-address=",
    ]
    with (folder / "alertmanager.log").open("w") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        try:
            wait_for(lambda: fetch(f"http://{address}/-/ready"), "Alertmanager is ready")
            yield Alertmanager(address)
        finally:
            process.kill()
