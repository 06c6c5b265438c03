"""What agents, the central Prometheus and VictoriaMetrics need, as docs/examples/scaling has them.

``python -m bench.fleet_scaled [nodes] [minutes]``.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

import psutil

from bench.fleet_nodes import GPUS
from tests.fleet.scaled import Pace, scaled


def run(count: int, minutes: float) -> None:
    """Prints one row a process."""
    folder = Path(tempfile.mkdtemp(prefix="fleet-"))
    print(f"| {count * GPUS} GPUs, {os.cpu_count()} cores | resident memory MiB | CPU of a core | GPUs it knows |")
    print("|---|---|---|---|")
    try:
        with scaled(folder, count, Pace(quick=False)) as site:
            named = {f"agent {number}": server for number, server in enumerate(site.agents)}
            named |= {"central Prometheus": site.central} | ({"VictoriaMetrics": site.store} if site.store else {})
            seen = {name: psutil.Process(server.process.pid) for name, server in named.items()}
            before = {name: sum(process.cpu_times()[:2]) for name, process in seen.items()}
            started = time.monotonic()
            time.sleep(60 * minutes)
            elapsed = time.monotonic() - started
            for name, process in seen.items():
                cpu = (sum(process.cpu_times()[:2]) - before[name]) / elapsed
                gpus = "" if name.startswith("agent") else f"{named[name].query('count(honest_gpu_info)')[0][1]:.0f}"
                print(f"| {name} | {process.memory_info().rss / 2**20:.0f} | {cpu:.0%} | {gpus} |")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    given = [float(argument) for argument in sys.argv[1:]]
    run(int(given[0]) if given else 250, given[1] if len(given) > 1 else 5.0)
