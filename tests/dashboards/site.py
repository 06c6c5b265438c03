"""A small site: daemons on simulated and played GPUs, with holders, prices and rules, scraped by a real Prometheus."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import subprocess
import sys
import urllib.parse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tests.abi.nvml.build import player_library
from tests.abi.nvml.happenings import xid
from tests.abi.nvml.playing import play
from tests.abi.nvml.scenario import Process, steps
from tests.abi.scenarios.models import Place, t4
from tests.abi.scenarios.nodes import h100_node
from tests.attribution.kubernetes.kubelet import Kubelet, pod
from tests.dashboards.reading import REPOSITORY
from tests.end_to_end.processes import Daemon, Prometheus, daemon, fetch, prometheus

WORKLOADS = (
    "training-healthy,input-starved,tiny-kernels,communication-bound,memory-bound,launch-bound,hang,idle-allocated,"
    "power-throttled,mig-mixed,flapping,idle"
)
GPU = "GPU-51313131-0000-0000-0000-{:012d}"
PRICE = ("--cost.price-per-hour=2.5", "--cost.currency=EUR")
FULL = "--metrics.profile=full"
OFTEN = "--sampling.interval=500ms"


@dataclass(frozen=True)
class Site:
    """``nodes``: what the label instance says, by what runs there."""

    server: Prometheus
    nodes: dict[str, str]

    def values(self, series: str, label: str) -> list[str]:
        """What label_values() gives Grafana."""
        query = urllib.parse.urlencode({"match[]": series})
        answer = json.loads(fetch(f"{self.server.url}/api/v1/label/{label}/values?{query}"))
        return [str(value) for value in answer["data"]]


def _jobs(folder: Path, **gpus: Sequence[str]) -> tuple[str, ...]:
    """What a prolog wrote: jobN -> its GPUs."""
    jobs = folder / "jobs"
    jobs.mkdir()
    for name, held in gpus.items():
        number = name.removeprefix("job")
        lines = [f"job_id={number}", f"user=user{number}", "account=ml", *(f"gpu={uuid}" for uuid in held)]
        (jobs / number).write_text("\n".join(lines) + "\n")
    return ("--collector.slurm", f"--slurm.jobs-folder={jobs}")


@contextlib.contextmanager
def _slurm_node(folder: Path) -> Iterator[Daemon]:
    """Every simulated workload, most of them in jobs."""
    # one of them names a GPU that is not there
    jobs = _jobs(folder, job7=[GPU.format(number) for number in range(8)], job8=[GPU.format(8), GPU.format(77)])
    arguments = ("--source=simulated", "--source.gpus=12", f"--source.workload={WORKLOADS}", FULL, OFTEN, *PRICE)
    with daemon(folder, *arguments, *jobs) as running:
        yield running


@contextlib.contextmanager
def _pod_node(folder: Path) -> Iterator[Daemon]:
    """Pods: two with a GPU each, and two that share one."""
    kubelet = Kubelet(folder / "kubelet.sock")
    kubelet.pods(
        [
            pod("rank-0", GPU.format(0)),
            pod("rank-1", GPU.format(1), GPU.format(3)),
            pod("a", f"{GPU.format(2)}::0", namespace="lab"),
            pod("b", f"{GPU.format(2)}::1", namespace="lab"),
        ]
    )
    kubelet.start()
    arguments = (
        "--source=simulated",
        "--source.gpus=4",
        "--source.workload=training-healthy,tiny-kernels",
        "--collector.kubernetes",
        f"--kubernetes.pod-resources-socket={folder / 'kubelet.sock'}",
    )
    try:
        with daemon(folder, *arguments, FULL, OFTEN, *PRICE) as running:
            yield running
    finally:
        kubelet.stop()


@contextlib.contextmanager
def _driver_node(folder: Path) -> Iterator[Daemon]:
    """A driver: a GPU with a real process, so that there is a host to look at, and an Xid.

    The other GPU has no profiling, and claims nonsense now and then, as is seen on real ones.
    """
    with subprocess.Popen([sys.executable, "-c", "import time\nwhile True: time.sleep(0.01)"]) as working:
        node = h100_node(1)
        processes = (Process(working.pid, memory=2.0**30),)
        claims = steps(*((float(second), 60.0 if second % 4 else 1980.0) for second in range(300)))
        place = Place(1, "00000000:64:00.0", 30_000, 40)
        boards = (
            replace(node.gpus[0], utilization=40.0, processes=processes),
            replace(t4(place), utilization=claims, processes=processes),
        )
        scenario = replace(node, gpus=boards, wall_offset=None, events=(xid(4.0, boards[0].key, 31),))
        playing = play(scenario, player_library(), folder / "nvml", real_time=True)
        jobs = _jobs(folder, job9=[board.uuid for board in boards])
        try:
            with daemon(folder, *jobs, FULL, OFTEN, *PRICE, environment=playing.environment()) as running:
                yield running
        finally:
            working.kill()


def _with_rules(server: Prometheus, folder: Path, nodes: dict[str, str]) -> None:
    """Rules every second instead of every minute, over the windows that they have; one node in a named cluster."""
    rules = folder / "rules"
    rules.mkdir()
    for path in (REPOSITORY / "rules").glob("*.yml"):
        (rules / path.name).write_text(re.sub(r"interval: \d+m", "interval: 1s", path.read_text()))
    here, elsewhere = [nodes["slurm"], nodes["driver"]], [nodes["pods"]]
    config = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [f"{rules}/*.yml"],
        "scrape_configs": [
            {
                "job_name": "honest",
                "static_configs": [{"targets": here}, {"targets": elsewhere, "labels": {"cluster": "east"}}],
            }
        ],
    }
    (folder / "prometheus.yml").write_text(json.dumps(config))
    server.process.send_signal(signal.SIGHUP)


@contextlib.contextmanager
def site(folder: Path) -> Iterator[Site]:
    """Until the end of the block."""
    for name in ("slurm", "pods", "driver"):
        (folder / name).mkdir()
    with (
        _slurm_node(folder / "slurm") as slurm,
        _pod_node(folder / "pods") as pods,
        _driver_node(folder / "driver") as driver,
    ):
        running = {"slurm": slurm, "pods": pods, "driver": driver}
        nodes = {name: each.ready().url.removeprefix("http://") for name, each in running.items()}
        with prometheus(folder) as server:
            _with_rules(server, folder, nodes)
            yield Site(server, nodes)
