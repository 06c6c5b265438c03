"""The example in docs/embedding.md works as it stands there."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

REPOSITORY = Path(__file__).parent.parent
AFTER = """
import sys
sys.stdin.readline()
gpus.close()
print("closed", gpus.snapshot.number)
"""


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


def page(port: int) -> str:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
            return str(answer.read().decode())
    except OSError:
        return ""


def test_the_example_serves_gpus_beside_the_programs_own_metrics(tmp_path: Path) -> None:
    text = (REPOSITORY / "docs" / "embedding.md").read_text()
    example = re.search(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    assert example is not None
    port = free_port()
    script = tmp_path / "example.py"
    script.write_text(example[1].replace("9837", f'{port}, "127.0.0.1"') + AFTER)
    environment = {**os.environ, "HONEST_GPU_SOURCE": "simulated", "PYTHONPATH": str(REPOSITORY)}
    with subprocess.Popen(
        [sys.executable, str(script)], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as running:
        try:
            until = time.monotonic() + 20
            while "honest_gpu_busy_ratio{" not in (shown := page(port)) and time.monotonic() < until:
                time.sleep(0.1)
            names = {metric.name for metric in text_string_to_metric_families(shown)}
            assert {"honest_gpu_busy_ratio", "honest_gpu_info", "process_resident_memory_bytes"} <= names
            output, _ = running.communicate("\n", timeout=10)
        finally:
            running.kill()
    assert running.returncode == 0
    assert output.startswith("closed ")
