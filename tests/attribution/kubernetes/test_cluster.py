"""What the API server adds to a kubelet's list: both are real servers, on a socket and over HTTPS."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from exporter.attribution.holdings import Allocations, Workload
from exporter.attribution.kubernetes import following
from exporter.attribution.kubernetes.api_server import ApiServer
from exporter.attribution.kubernetes.attributor import KubernetesAttributor
from exporter.attribution.kubernetes.cluster import PODS, PODS_PATH, SLICES, Cluster
from exporter.attribution.kubernetes.following import Following
from exporter.attribution.kubernetes.pod_facts import PodFacts, Wanted, label_names, pod_facts
from exporter.attribution.kubernetes.pod_resources import PodResources
from exporter.attribution.kubernetes.slices import PATHS, Slice, resource_slice, selector
from exporter.attribution.processes import ProcessAttributor
from exporter.model import Entity
from tests.attribution.kubernetes.api_double import ApiDouble, api_server
from tests.attribution.kubernetes.api_objects import CONTAINER, UID, api_pod, api_slice
from tests.attribution.kubernetes.kubelet import Kubelet, claiming, pod
from tests.attribution.kubernetes.test_device_ids import DEVICES, MIG, A, B
from tests.end_to_end.processes import wait_for

NODE = "node-1"
WANTED = Wanted(label_names(["team"]), uid=True, owner=True)


class Node:
    """A kubelet, an API server and what is made of them."""

    def __init__(self, folder: Path, api: ApiDouble) -> None:
        self.api = api
        self.kubelet = Kubelet(folder / "kubelet.sock")
        self.kubelet.start()
        self.now = 0.0
        self.pods: Following[PodFacts] = self._following(PODS, (PODS_PATH,), f"spec.nodeName={NODE}", self._facts)
        self.slices: Following[Slice] = self._following(SLICES, PATHS, selector(NODE), self._slice)
        self.cluster = Cluster(self.pods, self.slices)
        self.attributor = KubernetesAttributor(PodResources(folder / "kubelet.sock"), cluster=self.cluster)

    def _following(self, name: str, paths: tuple[str, ...], selected: str, keep: Any) -> Following[Any]:
        server = ApiServer("127.0.0.1", self.api.port, self.api.credentials, connect=5.0, silence=60.0)
        return Following(name, server, paths, selected, keep, lambda: self.now, time.time, wait=(0.05, 0.2))

    @staticmethod
    def _facts(document: dict[str, Any]) -> PodFacts | None:
        return pod_facts(document, WANTED)

    @staticmethod
    def _slice(document: dict[str, Any]) -> Slice | None:
        return resource_slice(document, NODE)

    def start(self) -> None:
        self.cluster.start()
        wait_for(lambda: self.pods.health.up, "the pods")

    def read(self) -> Allocations:
        return self.attributor.read(DEVICES)

    def held(self) -> list[str]:
        """NAME/CONTAINER of all holders."""
        return [f"{each.workload.pod}/{each.workload.container}" for each in self.read().holdings]

    def close(self) -> None:
        self.cluster.stop(10.0)
        self.attributor.close()
        self.kubelet.stop()


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    with api_server(tmp_path) as api:
        made = Node(tmp_path, api)
        try:
            yield made
        finally:
            made.close()


def replicas(*names: str) -> list[dict[str, Any]]:
    return [pod(name, f"{B}::{number}") for number, name in enumerate(names)]


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_pod_that_has_ended_drops_out_although_the_kubelet_lists_it(node: Node, phase: str) -> None:
    """Field case 52: a kubelet of before Kubernetes 1.34 goes on listing it."""
    node.kubelet.pods(replicas("done", "runs"))
    node.api.put(api_pod("done"))
    node.api.put(api_pod("runs", number=2))
    node.start()
    assert node.held() == ["done/main", "runs/main"]
    node.api.put(api_pod("done", phase=phase))
    wait_for(lambda: node.held() == ["runs/main"], "its end")


def test_a_container_that_has_ended_drops_out_and_its_pod_stays(node: Node) -> None:
    both = pod("train", B)
    both["containers"].append({"name": "side", "devices": [{"resource_name": "nvidia.com/gpu", "device_ids": [MIG]}]})
    node.kubelet.pods([both])
    node.api.put(api_pod("train", "main", "side", policy="OnFailure"))
    node.start()
    assert sorted(node.held()) == ["train/main", "train/side"]
    node.api.put(api_pod("train", "main", "side", policy="OnFailure", terminated={"side": 1}))
    node.api.put(api_pod("later", number=9))
    wait_for(lambda: len(node.pods.objects) == 2, "both changes")
    assert sorted(node.held()) == ["train/main", "train/side"]  # it failed, and is started again
    node.api.put(api_pod("train", "main", "side", policy="OnFailure", terminated={"side": 0}))
    wait_for(lambda: node.held() == ["train/main"], "its end")


def test_what_the_api_server_does_not_know_is_left_to_the_kubelet(node: Node) -> None:
    """A pod is on its node some time before a watch tells of it, and a deleted one runs on for its grace period."""
    node.kubelet.pods(replicas("new", "leaving"))
    node.api.put(api_pod("leaving", deleted=True))
    node.start()
    assert node.held() == ["leaving/main", "new/main"]
    node.api.delete("leaving")
    wait_for(lambda: not node.pods.objects, "the deletion")
    assert node.held() == ["leaving/main", "new/main"]


def test_a_pod_of_another_namespace_is_another_pod(node: Node) -> None:
    node.kubelet.pods([pod("train", B)])
    node.api.put(api_pod("train", phase="Failed", namespace="other", labels={"team": "other"}))
    node.start()
    (holding,) = node.read().holdings
    assert (holding.workload.namespace, dict(holding.labels)) == ("ml", {})


def test_labels_uid_owner_and_queue_are_the_holdings_and_not_the_workloads(node: Node) -> None:
    """They are for allocation_info alone: a counter's series must not change when somebody changes a label."""
    labels = {"team": "vision", "kueue.x-k8s.io/queue-name": "research", "secret": "x", "pod-template-hash": "5d4f"}
    node.kubelet.pods([pod("train", B)])
    node.api.put(api_pod("train", labels=labels, owner=("apps/v1", "ReplicaSet", "web-5d4f")))
    node.start()
    (holding,) = node.read().holdings
    assert holding.workload == Workload("ml", "train", "main")
    assert holding.labels == {
        "label_team": "vision",
        "pod_uid": UID.format(1),
        "owner_kind": "Deployment",
        "owner_name": "web",
        "queue": "research",
    }
    node.api.put(api_pod("train", labels={"team": "speech"}))
    wait_for(lambda: node.read().holdings[0].labels["label_team"] == "speech", "the change")


def test_without_an_api_server_the_kubelets_word_stands(node: Node) -> None:
    node.kubelet.pods(replicas("done", "runs"))
    node.api.put(api_pod("done", phase="Succeeded"))
    node.api.put(api_pod("runs", number=2, labels={"team": "vision"}))
    node.start()
    assert node.held() == ["runs/main"]
    node.api.stop()
    wait_for(lambda: not node.pods.health.up, "the loss")
    assert node.held() == ["runs/main"]  # what is known is believed for a while
    node.now = following.STALE_AFTER + 1
    read = node.read()
    assert [each.workload.pod for each in read.holdings] == ["done", "runs"]
    assert [dict(each.labels) for each in read.holdings] == [{}, {}]
    (pods, _) = node.cluster.health
    assert (pods.name, pods.up) == (PODS, False)


def test_an_api_server_that_was_never_reached_costs_nothing(node: Node) -> None:
    node.kubelet.pods(replicas("a", "b"))
    node.api.stop()
    node.cluster.start()
    wait_for(lambda: "cannot be reached" in node.pods.health.reason, "the reason")
    assert node.held() == ["a/main", "b/main"]


def test_a_kubelet_that_lists_nothing(node: Node) -> None:
    node.start()
    listed: list[list[dict[str, Any]]] = [[], [{}], [{"name": "bare", "containers": [{}]}]]
    for pods in listed:
        node.kubelet.pods(pods)
        read = node.read()
        assert (list(read.holdings), dict(read.unresolved), read.all_told) == ([], {}, True)


def test_a_cluster_of_nothing_says_nothing() -> None:
    nothing = Cluster()
    nothing.start()
    assert nothing.holds("ml", "train", "main")
    assert nothing.labels("ml", "train") == {}
    assert nothing.workload(UID.format(1), "x") is None
    assert nothing.uuid_of("node/gpu-0") is None
    assert nothing.health == ()
    nothing.stop(1.0)


def test_devices_of_claims_are_found_by_resource_slices(node: Node) -> None:
    """Field case 58: GPUs and MIG devices that a claim gave."""
    node.kubelet.pods([claiming("whole", (NODE, "gpu-0")), claiming("slice", (NODE, "gpu-1-mig-9-7-1"))])
    node.api.put(api_slice("s", {"gpu-0": B, "gpu-1-mig-9-7-1": MIG, "gpu-1-mig-19": None}, version="v1"), PATHS[0])
    node.start()
    wait_for(lambda: node.slices.health.up, "the slices")
    read = node.read()
    assert read.all_told
    assert [(each.entity, each.workload.pod, each.sharing.value) for each in read.holdings] == [
        (Entity(A, 7), "slice", "mig"),
        (Entity(B), "whole", "exclusive"),
    ]
    node.kubelet.pods([claiming("on-demand", (NODE, "gpu-1-mig-19"))])
    read = node.read()
    assert read.unresolved == {"claimed_device": 1}  # which instance it became, nothing tells
    assert not read.all_told


def test_older_apis_of_resource_slices(node: Node) -> None:
    node.kubelet.pods([claiming("whole", (NODE, "gpu-0"))])
    node.api.put(api_slice("s", {"gpu-0": B}, version="v1beta1"), PATHS[2])
    node.start()
    wait_for(lambda: node.held() == ["whole/main"], "the slice")


class TestProcesses:
    """From a process to its pod's name, by the control group's UID and container id."""

    @pytest.fixture(autouse=True)
    def procfs(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(psutil, "PROCFS_PATH", str(tmp_path / "proc"))

    @staticmethod
    def holders(node: Node, proc: Path, cgroup: str) -> list[tuple[Workload, dict[str, str]]]:
        for pid, name, path in ((2, "kthreadd", "/"), (10, "python", cgroup)):
            (proc / str(pid)).mkdir(parents=True, exist_ok=True)
            (proc / str(pid) / "stat").write_text(f"{pid} ({name}) S 1 {' '.join(['0'] * 48)}\n")
            (proc / str(pid) / "cgroup").write_text(f"0::{path}\n")
            (proc / str(pid) / "status").write_text(f"Name:\t{name}\nUid:\t1000\t0\t0\t0\n")
        asking = ProcessAttributor(lambda: [(Entity(B), 10)], str, pods=node.cluster.workload)
        return [(each.workload, dict(each.labels)) for each in asking.read(DEVICES).holdings]

    def test_a_container_by_its_id(self, node: Node, tmp_path: Path) -> None:
        node.api.put(api_pod("train", "main", "side", number=3))
        node.start()
        slices = f"/kubepods.slice/kubepods-pod{UID.format(3).replace('-', '_')}.slice"
        found = self.holders(node, tmp_path / "proc", f"{slices}/cri-containerd-{CONTAINER.format(49)}.scope")
        assert found == [(Workload("ml", "train", "side"), {})]

    def test_the_only_container_where_its_id_is_not_known_yet(self, node: Node, tmp_path: Path) -> None:
        node.api.put(api_pod("one", "main", number=3))
        node.api.put(api_pod("two", "main", "side", number=4))
        node.start()
        proc, unknown = tmp_path / "proc", "f" * 64
        found = self.holders(node, proc, f"/kubepods/burstable/pod{UID.format(3)}/{unknown}")
        assert found == [(Workload("ml", "one", "main"), {})]
        found = self.holders(node, proc, f"/kubepods/burstable/pod{UID.format(4)}/{unknown}")
        assert found == [(Workload("ml", "two"), {})]

    def test_a_static_pod_is_known_by_its_config_hash(self, node: Node, tmp_path: Path) -> None:
        """Its mirror in the API server has another UID than its control group."""
        digest = "5f1e0c1b0a2d4c3e9f8a7b6c5d4e3f2a"
        node.api.put(api_pod("etcd-node-1", number=5, annotations={"kubernetes.io/config.hash": digest}))
        node.start()
        found = self.holders(node, tmp_path / "proc", f"/kubepods/pod{digest}/{CONTAINER.format(80)}")
        assert found == [(Workload("ml", "etcd-node-1", "main"), {})]

    def test_one_of_no_known_pod_keeps_its_uid(self, node: Node, tmp_path: Path) -> None:
        node.start()
        found = self.holders(node, tmp_path / "proc", f"/kubepods/pod{UID.format(7)}/{CONTAINER.format(1)}")
        assert found == [(Workload(container=CONTAINER.format(1)[:12]), {"pod_uid": UID.format(7)})]


class TestAllocatable:
    """What may be handed out at all, by device plugins."""

    def test_devices_that_are_offered_are_allocatable_held_or_not(self, node: Node) -> None:
        node.kubelet.offers(B, f"MIG-{A}/7/0")
        node.kubelet.pods([pod("train", B)])
        assert node.read().allocatable == frozenset({Entity(B), Entity(A, 7)})

    def test_a_sick_gpu_is_not_offered_and_may_still_be_held(self, node: Node) -> None:
        node.kubelet.offers(MIG)
        node.kubelet.pods([pod("train", B)])
        read = node.read()
        assert read.allocatable == frozenset({Entity(A, 7)})
        assert [each.entity for each in read.holdings] == [Entity(B)]

    def test_replicas_and_ids_of_nothing_here(self, node: Node) -> None:
        node.kubelet.offers(f"{B}::0", f"{B}::1", "ABCD-0", "GPU-gone")
        read = node.read()
        assert read.allocatable == frozenset({Entity(B)})
        assert not read.unresolved  # nobody holds them

    def test_it_is_not_known_where_no_plugin_offers_gpus(self, node: Node) -> None:
        assert node.read().allocatable is None  # resource claims alone, or no plugin at all
        node.kubelet.offers("mlx5_0", resource="rdma/hca")
        assert KubernetesAttributor(node.attributor._kubelet).read(DEVICES).allocatable is None

    def test_a_kubelet_that_does_not_tell(self, node: Node, tmp_path: Path) -> None:
        node.kubelet.stop()
        node.kubelet.tells_allocatable = False
        node.kubelet.offers(B)
        node.kubelet.pods([pod("train", B)])
        node.kubelet.start()
        read = node.read()
        assert read.allocatable is None
        assert len(read.holdings) == 1  # who holds what does not hang on it

    def test_it_is_asked_for_once_a_minute(self, node: Node) -> None:
        now = [0.0]
        asking = KubernetesAttributor(node.attributor._kubelet, monotonic=lambda: now[0])
        node.kubelet.offers(B)
        assert asking.read(DEVICES).allocatable == frozenset({Entity(B)})
        node.kubelet.offers(MIG)
        now[0] = 59.0
        assert asking.read(DEVICES).allocatable == frozenset({Entity(B)})
        now[0] = 61.0
        assert asking.read(DEVICES).allocatable == frozenset({Entity(B), Entity(A, 7)})
