"""Pods that hold simulated GPUs, from a kubelet's socket to the metrics."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from exporter.attribution.kubernetes.slices import PATHS
from tests.attribution.kubernetes.api_double import ApiDouble, api_server
from tests.attribution.kubernetes.api_objects import api_pod, api_slice
from tests.attribution.kubernetes.kubelet import Kubelet, claiming, pod
from tests.end_to_end.processes import daemon, pick, wait_for

pytestmark = pytest.mark.system

GPU = "GPU-51313131-0000-0000-0000-{:012d}"


def test_pods_hold_gpus_and_the_kubelet_restarts(tmp_path: Path) -> None:
    kubelet = Kubelet(tmp_path / "kubelet.sock")
    kubelet.pods([pod("train", GPU.format(0)), pod("a", f"{GPU.format(1)}::0"), pod("b", f"{GPU.format(1)}::1")])
    kubelet.start()
    arguments = (
        "--source=simulated",
        "--source.gpus=3",
        "--collector.kubernetes",
        f"--kubernetes.pod-resources-socket={tmp_path / 'kubelet.sock'}",
    )
    with daemon(tmp_path, *arguments) as running:
        running.ready()
        held = "honest_gpu_allocation_info"
        wait_for(lambda: running.value(held, gpu="0", namespace="ml", pod="train", container="main"), "the holder")
        assert running.value(held, gpu="0", pod="train", sharing="exclusive") == 1
        assert running.value(held, gpu="1", pod="a", sharing="time_sliced") == 1
        assert running.value(held, gpu="1", pod="b", sharing="time_sliced") == 1
        assert running.value("honest_gpu_allocated", gpu="2") == 0
        wait_for(
            lambda: running.value("honest_gpu_workload_time_seconds_total", pod="train", part="working"), "its time"
        )
        # shared without samples of its processes: not split, and not lost
        assert running.value("honest_gpu_workload_time_seconds_total", pod="a", part="working") is None
        assert running.value("honest_gpu_unattributed_time_seconds_total", gpu="1", part="idle")
        kubelet.stop()
        wait_for(lambda: running.value("honest_gpu_attribution_up", source="kubernetes") == 0, "the loss", 30)
        kubelet.start()
        wait_for(lambda: running.value("honest_gpu_attribution_up", source="kubernetes") == 1, "the return", 30)
    kubelet.stop()


@contextmanager
def node(folder: Path) -> Iterator[tuple[Kubelet, ApiDouble]]:
    """A kubelet and an API server that know two pods, one of them with a claim."""
    kubelet = Kubelet(folder / "kubelet.sock")
    kubelet.pods([pod("done", GPU.format(0)), pod("train", GPU.format(1)), claiming("claims", ("node-1", "gpu-2"))])
    kubelet.offers(GPU.format(0), GPU.format(1))
    kubelet.start()
    try:
        with api_server(folder) as api:
            labels = {"team": "vision", "secret": "x", "pod-template-hash": "5d4f"}
            api.put(api_pod("done", number=1))
            api.put(api_pod("train", number=2, labels=labels, owner=("apps/v1", "ReplicaSet", "web-5d4f")))
            api.put(api_slice("s", {"gpu-2": GPU.format(2)}, version="v1"), PATHS[0])
            yield kubelet, api
    finally:
        kubelet.stop()


def arguments(folder: Path, api: ApiDouble) -> tuple[str, ...]:
    return (
        "--source=simulated",
        "--source.gpus=4",
        "--collector.kubernetes",
        f"--kubernetes.pod-resources-socket={folder / 'kubelet.sock'}",
        f"--kubernetes.api-server={api.url}",
        "--kubernetes.node-name=node-1",
        f"--kubernetes.token-file={api.credentials.token}",
        f"--kubernetes.ca-file={api.credentials.ca}",
        "--kubernetes.pod-labels=team",
        "--kubernetes.pod-owner",
        "--kubernetes.resource-slices",
    )


def test_the_api_server_adds_labels_owners_claims_and_ends(tmp_path: Path) -> None:
    held = "honest_gpu_allocation_info"
    with node(tmp_path) as (_, api), daemon(tmp_path, *arguments(tmp_path, api)) as running:
        running.ready()
        wait_for(lambda: running.value(held, gpu="2", pod="claims", sharing="exclusive"), "the claim")
        wait_for(
            lambda: running.value(held, gpu="1", pod="train", label_team="vision", owner_kind="Deployment"), "labels"
        )
        assert running.value(held, gpu="1", owner_name="web") == 1
        assert running.value(held, gpu="0", pod="done") == 1
        found = running.metrics()
        assert not [series for series in found if "secret" in series]
        assert not [series for series in found if "label_team" in series and not series.startswith(held)]
        assert pick(found, "honest_gpu_allocatable", gpu="1") == 1
        assert pick(found, "honest_gpu_allocatable", gpu="3") == 0
        for source in ("kubernetes", "kubernetes_api", "kubernetes_slices"):
            assert pick(found, "honest_gpu_attribution_up", source=source) == 1
        api.put(api_pod("done", number=1, phase="Succeeded"))  # the kubelet goes on listing it
        wait_for(lambda: running.value(held, gpu="0", pod="done") is None, "its end")
        assert running.value("honest_gpu_allocated", gpu="0") == 0
        assert running.value("honest_gpu_workload_time_seconds_total", pod="done", part="idle") is not None
        api.stop()
        wait_for(lambda: running.value("honest_gpu_attribution_up", source="kubernetes_api") == 0, "the loss")
        assert running.value(held, gpu="1", pod="train") == 1
        assert running.value("honest_gpu_attribution_up", source="kubernetes") == 1
        assert "the kubelet's list is used alone" in running.log


def test_it_ends_at_once_while_watches_are_open(tmp_path: Path) -> None:
    with node(tmp_path) as (_, api), daemon(tmp_path, *arguments(tmp_path, api)) as running:
        running.ready()
        wait_for(lambda: api.watches() and api.watches(PATHS[0]), "the watches")
        assert running.stop() < 5.0
        assert running.process.returncode == 0
        assert "Traceback" not in running.log
