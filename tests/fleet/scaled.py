"""The site of docs/scaling.md, made of docs/examples/scaling: two agents, the central Prometheus, VictoriaMetrics."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from bench.fleet_nodes import nodes
from tests.alerting.compressed import REPOSITORY, compressed, rules
from tests.fleet.servers import Server, here, prometheus, victoria_metrics

EXAMPLES = REPOSITORY / "docs" / "examples" / "scaling"


@dataclass(frozen=True)
class Site:
    """``store``: None where VictoriaMetrics is not installed."""

    agents: list[Server]
    central: Server
    store: Server | None


@dataclass(frozen=True, slots=True)
class Pace:
    """``quick``: a scrape a second, and rules and waits sixty times faster; else as the examples say."""

    quick: bool

    def example(self, name: str) -> Any:
        """A file of docs/examples/scaling."""
        config = yaml.safe_load((EXAMPLES / name).read_text())
        if not self.quick:
            return config
        config = compressed(config)
        for job in config["scrape_configs"]:
            job["scrape_interval"] = "1s"
        config["remote_write"][0]["queue_config"]["batch_send_deadline"] = "1s"
        return config

    def rules(self, folder: Path) -> str:
        """A pattern of rule files."""
        if not self.quick:
            return f"{REPOSITORY}/rules/*.yml"
        folder.mkdir()
        return rules(folder)


def _agent(pace: Pace, shard: int, targets: list[dict[str, object]], central: str) -> Any:
    config = pace.example("agent.yml")
    (job,) = config["scrape_configs"]
    job["static_configs"] = targets
    job["relabel_configs"][0]["source_labels"] = ["__metrics_path__"]  # in which the nodes of one process differ
    job["relabel_configs"][1]["regex"] = str(shard)
    config["remote_write"][0]["url"] = f"http://{central}/api/v1/write"
    return config


def _central(pace: Pace, folder: Path, agents: list[str], store: str) -> Any:
    config = pace.example("central.yml")
    config["rule_files"] = [pace.rules(folder / "rules")]
    config["alerting"]["alertmanagers"] = []
    config["scrape_configs"][0]["static_configs"][0]["targets"] = agents
    config["remote_write"][0]["url"] = f"http://{store}/api/v1/write"
    return config


@contextlib.contextmanager
def scaled(folder: Path, count: int, pace: Pace) -> Iterator[Site]:
    """With that many nodes of 8 GPUs, until the end of the block."""
    central, store, addresses = here(), here(), [here(), here()]
    receiver = ("--web.enable-remote-write-receiver", f"--storage.tsdb.path={folder / 'central'}")
    with contextlib.ExitStack() as stack:
        kept = stack.enter_context(victoria_metrics(folder, store)) if shutil.which("victoria-metrics") else None
        made = stack.enter_context(nodes(folder, count))
        config = _central(pace, folder, addresses, store)
        middle = stack.enter_context(prometheus(folder, "central", config, central, *receiver))
        agents = []
        for shard, address in enumerate(addresses):
            options = ("--enable-feature=agent", f"--storage.agent.path={folder / f'agent-{shard}'}")
            config = _agent(pace, shard, made.targets(), central)
            agents.append(stack.enter_context(prometheus(folder, f"agent-{shard}", config, address, *options)))
        yield Site(agents, middle, kept)
