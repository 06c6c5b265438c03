"""From silicon to message: simulated GPUs, the daemon, Prometheus with the rules, Alertmanager, a webhook.

A minute of rules and waits passes in a second (compressed.py); the GPUs and the daemon run in real time.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from tests.alerting.alertmanager import Alertmanager, alertmanager
from tests.alerting.compressed import REPOSITORY, example, query, rules
from tests.alerting.mailbox import Mailbox, Message, mailbox
from tests.attribution.kubernetes.kubelet import Kubelet, pod
from tests.end_to_end.processes import Daemon, Prometheus, daemon, prometheus, wait_for

pytestmark = pytest.mark.system

WORKLOADS = ("hang", "input-starved", "tiny-kernels", "training-healthy")
HANG, STARVED, TINY, HEALTHY = WORKLOADS
UUIDS = {name: f"GPU-51313131-0000-0000-0000-{number:012d}" for number, name in enumerate(WORKLOADS)}
QUICK = ("--state.hold=1s", "--collector.kubernetes")


@dataclass(frozen=True)
class Site:
    """``node`` holds all workloads; ``leaver`` one GPU with tiny kernels, on a node that is to vanish."""

    server: Prometheus
    manager: Alertmanager
    inbox: Mailbox
    node: Daemon
    leaver: Daemon

    def told(self, workload: str, name: str) -> list[Message]:
        """Messages of this alert about the GPU on ``node`` with this workload."""
        return self.inbox.messages(alertname=name, uuid=UUIDS[workload], instance=address(self.node))


def address(running: Daemon) -> str:
    return running.url.removeprefix("http://")


@contextlib.contextmanager
def _node(folder: Path, *workloads: str) -> Iterator[Daemon]:
    """Each workload's GPU is held by a pod of its name in the namespace ml."""
    folder.mkdir()
    socket = folder / "kubelet.sock"
    kubelet = Kubelet(socket)
    kubelet.pods([pod(name, f"GPU-51313131-0000-0000-0000-{n:012d}") for n, name in enumerate(workloads)])
    kubelet.start()
    source = ("--source=simulated", f"--source.gpus={len(workloads)}", f"--source.workload={','.join(workloads)}")
    try:
        with daemon(folder, *source, *QUICK, f"--kubernetes.pod-resources-socket={socket}") as running:
            yield running
    finally:
        kubelet.stop()


def _configure(server: Prometheus, folder: Path, manager: str, targets: list[str]) -> None:
    """As docs/examples/prometheus.yml says, but for the addresses and the time."""
    config = example("prometheus.yml")
    (job,) = config["scrape_configs"]
    config["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    job["static_configs"][0]["targets"] = targets
    config["alerting"]["alertmanagers"] = [{"static_configs": [{"targets": [manager]}]}]
    (folder / "rules").mkdir()
    config["rule_files"] = [rules(folder / "rules")]
    (folder / "prometheus.yml").write_text(json.dumps(config))
    server.process.send_signal(signal.SIGHUP)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("alerting")
    with (
        mailbox() as inbox,
        alertmanager(folder, inbox.url) as manager,
        _node(folder / "node", *WORKLOADS) as node,
        _node(folder / "leaver", TINY) as leaver,
        prometheus(folder) as server,
    ):
        targets = [address(node.ready()), address(leaver.ready())]
        _configure(server, folder, manager.address, targets)
        yield Site(server, manager, inbox, node, leaver)


ARRIVE = {HANG: "HonestGpuSuspectedHang", STARVED: "HonestGpuInputStarved", TINY: "HonestGpuDivergence"}
HELD_BACK = {"alertname": "HonestGpuDivergence", "uuid": UUIDS[HANG]}
SEVERITY = {HANG: "critical", STARVED: "warning", TINY: "warning"}


@pytest.fixture(scope="module")
def told(site: Site) -> Site:
    """Once all that is to arrive has arrived, and what is to be held back is there."""
    for workload, name in ARRIVE.items():
        wait_for(lambda each=(workload, name): site.told(*each), f"{name} arrives", 90)
    wait_for(lambda: HELD_BACK.items() <= _inhibited(site).items(), "the divergence of a hang is inhibited", 60)
    return site


def _inhibited(site: Site) -> dict[str, str]:
    """Labels of the alert about the GPU that hangs that is held back."""
    found = [dict(labels) for labels, held_back in site.manager.alerts() if held_back]
    return next((labels for labels in found if labels.get("uuid") == UUIDS[HANG]), {})


@pytest.mark.parametrize("workload", ARRIVE)
def test_who_wastes_a_gpu_is_told(told: Site, workload: str) -> None:
    first = told.told(workload, ARRIVE[workload])[0]
    assert (first.receiver, first.status) == ("holders", "firing")
    expected = {
        "severity": SEVERITY[workload],
        "kind": "efficiency",
        "cluster": "east",
        "node": "127",  # of 127.0.0.1: the example takes what is before the first dot
        "gpu": str(WORKLOADS.index(workload)),
        "namespace": "ml",
        "pod": workload,
        "container": "main",
    }
    assert expected.items() <= first.labels.items()
    assert f"Held by ml/{workload}." in first.annotations["description"]
    assert (REPOSITORY / first.annotations["runbook_url"]).exists()


def test_nothing_else_is_told(told: Site) -> None:
    """Neither the divergence that follows from the hang, nor anything about the healthy one."""
    assert {(m.name, m.labels.get("pod")) for m in told.inbox.messages(instance=address(told.node))} == {
        (name, workload) for workload, name in ARRIVE.items()
    }


def test_the_healthy_one_is_seen_and_left_alone(told: Site) -> None:
    assert told.server.query(f'ALERTS{{uuid="{UUIDS[HEALTHY]}",alertstate="firing"}}') == []
    assert told.server.one(f'gpu:honest_gpu_claim:ratio_rate5m{{uuid="{UUIDS[HEALTHY]}"}}') > 0.7


def test_gpu_seconds_by_namespace_and_part(told: Site) -> None:
    """The query that rules/README.md gives: five GPUs spend five seconds a second."""
    asked = 'sum by (namespace, part) (increase(honest_gpu_workload_time_seconds_total{namespace!=""}[1h]))'
    assert asked in (REPOSITORY / "rules" / "README.md").read_text()
    found = {labels["part"]: value for labels, value in told.server.query(query(asked))}
    assert set(found) == {"working", "stalled", "hollow", "idle"}
    elapsed = told.server.one(query('sum(increase(honest_gpu_observed_seconds_total{of="parts"}[1h]))'))
    assert sum(found.values()) == pytest.approx(elapsed, rel=0.05)
    claimed = told.server.one(query("sum(increase(honest_gpu_busy_seconds_total[1h]))"))
    assert found["working"] + found["stalled"] < claimed < elapsed
    assert found["hollow"] > elapsed / 5  # the tiny kernels alone are two of five GPUs


def test_a_node_that_vanishes_is_told_and_its_alerts_do_not_resolve(told: Site) -> None:
    """An alert beside it, in the same group of the holder, ends after it: its "resolved" is sent, the other is not."""
    tiny = {"alertname": "HonestGpuDivergence", "instance": address(told.leaver)}
    beside = {"instance": "beside"}
    group = {
        "alertname": "HonestGpuDivergence",
        "cluster": "east",
        "namespace": "ml",
        "pod": TINY,
        "kind": "efficiency",
    }
    wait_for(lambda: told.inbox.messages(**tiny), "the node that is to vanish has an alert", 60)
    told.leaver.process.kill()
    absent = {"alertname": "HonestGpuExporterAbsent", "instance": address(told.leaver)}
    wait_for(lambda: told.inbox.messages(**absent), "the node's absence arrives", 60)
    assert told.inbox.messages(**absent)[0].receiver == "pager"
    told.manager.tell(beside | group)
    wait_for(lambda: told.inbox.messages(**beside), "the alert beside it arrives", 60)
    wait_for(
        lambda: not any(tiny.items() <= labels.items() for labels, _ in told.manager.alerts()),
        "Prometheus ends the alert of the node that is away",
        60,
    )
    told.manager.tell(beside | group, ended=True)
    wait_for(lambda: told.inbox.messages(**beside)[-1].status == "resolved", "the one beside it is resolved", 60)
    assert {message.status for message in told.inbox.messages(**tiny)} == {"firing"}


def test_amtool_takes_the_example() -> None:
    amtool = shutil.which("amtool")
    if amtool is None:
        pytest.skip("amtool is not installed (Debian package prometheus-alertmanager)")
    path = REPOSITORY / "docs" / "examples" / "alertmanager.yml"
    done = subprocess.run([amtool, "check-config", str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_promtool_takes_the_example(tmp_path: Path) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed (Debian package prometheus)")
    shutil.copytree(REPOSITORY / "rules", tmp_path / "rules")
    shutil.copy(REPOSITORY / "docs" / "examples" / "prometheus.yml", tmp_path)
    done = subprocess.run(
        [promtool, "check", "config", str(tmp_path / "prometheus.yml")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "rule files found" in done.stdout


def test_every_inhibition_names_alerts_that_exist() -> None:
    known = (REPOSITORY / "rules" / "alerts.yml").read_text()
    config = yaml.safe_load((REPOSITORY / "docs" / "examples" / "alertmanager.yml").read_text())
    for rule in config["inhibit_rules"]:
        for matcher in rule["source_matchers"] + rule["target_matchers"]:
            label, _, value = matcher.replace("=~", "=").replace("!=", "=").partition("=")
            names = value.strip('"').split("|") if label == "alertname" else []
            assert all(f"alert: {name}\n" in known for name in names), matcher
