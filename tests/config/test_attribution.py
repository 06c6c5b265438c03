"""Options that say whose a GPU is: what they build, and which of them do not go together."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from exporter.attribution.stage import AttributionStage
from exporter.cli.attribution import build_attribution
from exporter.cli.stages import build_assembly
from exporter.config.settings import ConfigError
from tests.config.test_loading import in_file, loaded

API = "kubernetes: {api-server: 'https://10.0.0.1:6443', node-name: node-1"
KUBELET = "collector: {kubernetes: true}\n"


def built(*flags: str) -> AttributionStage | None:
    return build_attribution(loaded(*flags).settings)


def test_nobody_is_asked_by_default() -> None:
    assert built() is None


@pytest.mark.parametrize(
    ("flags", "sources", "helpers"),
    [
        (["--collector.kubernetes"], ["kubernetes"], []),
        (["--collector.processes", "--collector.slurm"], ["slurm", "processes"], []),
        (
            [
                "--collector.kubernetes",
                "--collector.processes",
                "--kubernetes.api-server=https://10.0.0.1:6443",
                "--kubernetes.node-name=node-1",
                "--kubernetes.resource-slices",
                "--kubernetes.pod-labels=team",
            ],
            ["kubernetes", "processes"],
            ["kubernetes_api", "kubernetes_slices"],
        ),
    ],
)
def test_who_is_asked(flags: list[str], sources: list[str], helpers: list[str]) -> None:
    stage = built(*flags)
    assert stage is not None
    view = stage.update(1.0, {}, ())
    assert [each.name for each in view.sources] == sources
    assert [each.name for each in view.helpers] == helpers
    assert view.processes is None  # single processes are another switch


def test_single_processes_are_listed_on_request() -> None:
    stage = built("--collector.processes", "--processes.families", "--processes.most=2")
    assert stage is not None
    assert stage.update(1.0, {}, ()).processes is not None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("processes: {families: true}", r"processes.families: needs --collector.processes"),
        ("kubernetes: {pod-labels: team}", r"kubernetes.pod-labels: needs --kubernetes.api-server, such as in-cluster"),
        ("kubernetes: {pod-uid: true}", r"kubernetes.pod-uid: needs --kubernetes.api-server"),
        ("kubernetes: {pod-owner: true}", r"kubernetes.pod-owner: needs --kubernetes.api-server"),
        ("kubernetes: {resource-slices: true}", r"kubernetes.resource-slices: needs --kubernetes.api-server"),
        (
            f"{KUBELET}kubernetes: {{api-server: in-cluster}}",
            r"kubernetes.api-server: needs --kubernetes.node-name.*HONEST_GPU_KUBERNETES_NODE_NAME.*spec.nodeName",
        ),
        (API + "}", r"kubernetes.api-server: needs --collector.kubernetes or --collector.processes"),
        (
            f"collector: {{processes: true}}\n{API}, pod-labels: [team]}}",
            r"kubernetes.pod-labels: needs --collector.kubernetes: it adds to the kubelet's list",
        ),
        (
            f"{KUBELET}{API}, pod-labels: [a.b, a-b]}}",
            r"kubernetes.pod-labels: a.b and a-b would both become label_a_b: remove one of them",
        ),
        (
            f"{KUBELET}{API.replace('https', 'http')}}}",
            r"kubernetes.api-server: 'http://.*expected in-cluster or a URL",
        ),
        (
            f"{KUBELET}kubernetes: {{api-server: in-cluster, node-name: node-1}}",
            r"kubernetes.api-server: in-cluster only works in a pod, where KUBERNETES_SERVICE_HOST is set",
        ),
        (f"{KUBELET}kubernetes: {{node-name: 'a,b'}}", r"kubernetes.node-name: 'a,b': expected a node name"),
        (f"{KUBELET}kubernetes: {{pod-labels: 'a b'}}", r"kubernetes.pod-labels: 'a b': expected a label name"),
        ("processes: {most: 0}", r"processes.most: '?0'?: expected"),
        ("kubernetes: {replicas: shared}", r"kubernetes.replicas: 'shared': expected time_sliced or mps"),
    ],
)
def test_what_does_not_go_together_is_refused_by_file_and_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, message: str
) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(ConfigError, match=message) as raised:
        build_attribution(in_file(tmp_path, text).settings)
    assert str(raised.value).startswith(str(tmp_path / "exporter.yaml"))


@pytest.mark.parametrize(
    ("flags", "path"),
    [
        (["--source=nvml", "--path.procfs=/host/proc"], "/host/proc"),
        (["--source=simulated", "--collector.processes", "--path.procfs=/host/proc"], "/host/proc"),
        (["--source=simulated", "--path.procfs=/host/proc"], "/proc"),  # nothing reads processes
    ],
)
def test_processes_are_read_where_the_hosts_proc_is_mounted(
    flags: list[str], path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(psutil, "PROCFS_PATH", "/proc")
    build_assembly(loaded(*flags).settings, lambda snapshot: None)
    assert path == psutil.PROCFS_PATH
