"""Memory and CPU of the real daemon on a simulated node of 8 GPUs, scraped every 15 s as Prometheus does.

CPU is that of the whole process over the measured time, start excluded; the simulator's own work is in it, so it is an
upper bound of what sampling, derivation and serving cost.
"""

from __future__ import annotations

import subprocess
import sys
import time
import urllib.request

import psutil

PORT = 19836
SETTLE, MEASURE, SCRAPE_EVERY = 5.0, 30.0, 15.0


def _scrape() -> None:
    request = urllib.request.Request(
        f"http://127.0.0.1:{PORT}/metrics",
        headers={"Accept": "application/openmetrics-text;version=1.0.0", "Accept-Encoding": "gzip"},
    )
    with urllib.request.urlopen(request, timeout=5) as answer:
        answer.read()


def _run(interval: str, *arguments: str) -> None:
    command = [sys.executable, "-m", "exporter", "--source=simulated", f"--sampling.interval={interval}"]
    process = subprocess.Popen(
        [*command, f"--web.listen-address=127.0.0.1:{PORT}", *arguments], stderr=subprocess.DEVNULL
    )
    try:
        time.sleep(SETTLE)
        seen = psutil.Process(process.pid)
        before, started = seen.cpu_times(), time.monotonic()
        while (elapsed := time.monotonic() - started) < MEASURE:
            _scrape()
            time.sleep(min(SCRAPE_EVERY, MEASURE - elapsed))
        after = seen.cpu_times()
        cpu = (after.user + after.system - before.user - before.system) / (time.monotonic() - started)
        rss = seen.memory_info().rss / 2**20
        print(f"| {interval} | {' '.join(arguments) or 'default'} | {rss:.1f} | {cpu:.2%} |")
    finally:
        process.terminate()
        process.wait(5)


if __name__ == "__main__":
    print("| interval | options | RSS MiB | CPU of a core |\n|---|---|---|---|")
    for interval in ("1s", "100ms"):
        _run(interval, "--source.gpus=8")
    _run("1s", "--source.gpus=8", "--source.workload=mig-mixed")
