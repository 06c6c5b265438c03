"""Pods and GPUs, over a real gRPC socket."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from exporter.attribution.holdings import AttributionError, Sharing, Workload
from exporter.attribution.kubernetes.api_server import ApiServer
from exporter.attribution.kubernetes.attributor import KubernetesAttributor
from exporter.attribution.kubernetes.cluster import SLICES, Cluster
from exporter.attribution.kubernetes.following import Following
from exporter.attribution.kubernetes.pod_resources import PodResources
from exporter.attribution.kubernetes.slices import PATHS, resource_slice, selector
from exporter.model import Entity
from tests.attribution.kubernetes.api_double import Collection, api_server
from tests.attribution.kubernetes.api_objects import api_slice
from tests.attribution.kubernetes.kubelet import Kubelet, claiming, pod
from tests.attribution.kubernetes.test_device_ids import DEVICES, MIG, A, B
from tests.end_to_end.processes import wait_for


@pytest.fixture
def kubelet(tmp_path: Path) -> Iterator[Kubelet]:
    server = Kubelet(tmp_path / "kubelet.sock")
    server.start()
    yield server
    server.stop()


@pytest.fixture
def attributor(tmp_path: Path) -> Iterator[KubernetesAttributor]:
    made = KubernetesAttributor(PodResources(tmp_path / "kubelet.sock", deadline=1.0))
    yield made
    made.close()


def held(attributor: KubernetesAttributor) -> list[tuple[Entity, str, Sharing]]:
    return [(h.entity, h.workload.pod, h.sharing) for h in attributor.read(DEVICES).holdings]


def test_pods_and_their_devices(kubelet: Kubelet, attributor: KubernetesAttributor) -> None:
    kubelet.pods([pod("whole", B), pod("slice", MIG), pod("cpu"), pod("nic", "mlx5_0", resource="rdma/hca")])
    allocations = attributor.read(DEVICES)
    assert held(attributor) == [(Entity(A, 7), "slice", Sharing.MIG), (Entity(B), "whole", Sharing.EXCLUSIVE)]
    assert allocations.holdings[1].workload == Workload("ml", "whole", "main")
    assert not allocations.unresolved


def test_replicas_name_all_holders_at_once(kubelet: Kubelet, attributor: KubernetesAttributor) -> None:
    kubelet.pods([pod(f"p{n}", f"{B}::{n}", resource="nvidia.com/gpu.shared") for n in range(3)])
    first = held(attributor)
    assert first == [(Entity(B), f"p{n}", Sharing.TIME_SLICED) for n in range(3)]
    assert held(attributor) == first  # stable from read to read


def test_one_replica_alone_is_still_shared(kubelet: Kubelet, attributor: KubernetesAttributor) -> None:
    kubelet.pods([pod("p", f"{B}::0")])
    assert held(attributor) == [(Entity(B), "p", Sharing.TIME_SLICED)]


def test_a_renamed_resource_is_configured(kubelet: Kubelet, tmp_path: Path) -> None:
    kubelet.pods([pod("p", B, resource="example.org/accelerator")])
    renamed = KubernetesAttributor(PodResources(tmp_path / "kubelet.sock"), resources=("example.org/*",))
    assert held(renamed) == [(Entity(B), "p", Sharing.EXCLUSIVE)]
    assert held(KubernetesAttributor(PodResources(tmp_path / "kubelet.sock"))) == []


def test_unknown_ids_are_counted_and_said_once(
    kubelet: Kubelet, attributor: KubernetesAttributor, caplog: pytest.LogCaptureFixture
) -> None:
    kubelet.pods([pod("odd", "ABCD-0", B[:-1] + "5"), pod("fine", B)])
    for _ in range(3):
        allocations = attributor.read(DEVICES)
    assert dict(allocations.unresolved) == {"unknown_form": 1, "unknown_device": 1}
    assert len(allocations.holdings) == 1
    assert len([record for record in caplog.records if "is not a GPU of this node" in record.message]) == 2


@pytest.mark.parametrize("path", PATHS)
def test_dynamic_resources(kubelet: Kubelet, tmp_path: Path, path: str) -> None:
    version = path.split("/")[3]
    kubelet.pods(
        [
            claiming("one", ("node", "gpu-0")),
            claiming("two", ("node", "gpu-0")),
            claiming("x", ("n", "nic"), driver="x"),
        ]
    )
    with api_server(tmp_path) as api:
        api.collections[path] = Collection()  # of the versions, the only one that there is
        api.put(api_slice("s", {"gpu-0": B}, version=version, pool="node"), path)
        server = ApiServer("127.0.0.1", api.port, api.credentials)
        slices = Following(
            SLICES, server, PATHS, selector("node-1"), lambda d: resource_slice(d, "node-1"), time.monotonic, time.time
        )
        cluster = Cluster(slices=slices)
        cluster.start()
        try:
            wait_for(lambda: cluster.uuid_of("node/gpu-0"), "the slice")
            known = KubernetesAttributor(PodResources(tmp_path / "kubelet.sock"), cluster=cluster)
            assert held(known) == [(Entity(B), "one", Sharing.DRA_SHARED), (Entity(B), "two", Sharing.DRA_SHARED)]
        finally:
            cluster.stop(5.0)
    unknown = KubernetesAttributor(PodResources(tmp_path / "kubelet.sock")).read(DEVICES)
    assert dict(unknown.unresolved) == {"claimed_device": 2}


def test_500_pods(kubelet: Kubelet, attributor: KubernetesAttributor) -> None:
    kubelet.pods([pod(f"p{n:03d}", f"{B}::{n}") for n in range(500)])
    assert len(held(attributor)) == 500


def test_a_kubelet_that_restarts(kubelet: Kubelet, attributor: KubernetesAttributor) -> None:
    kubelet.pods([pod("p", B)])
    assert len(held(attributor)) == 1
    kubelet.stop()
    with pytest.raises(AttributionError, match="does not exist") as raised:
        attributor.read(DEVICES)
    assert "pod-resources" in raised.value.remedy
    kubelet.start()
    assert len(held(attributor)) == 1


def test_a_kubelet_that_hangs(kubelet: Kubelet, attributor: KubernetesAttributor) -> None:
    kubelet.pods([pod("p", B)])
    kubelet.hang.set()
    with pytest.raises(AttributionError, match="did not answer within 1 s"):
        attributor.read(DEVICES)
    kubelet.hang.clear()
    assert len(held(attributor)) == 1


def test_an_old_kubelet(kubelet: Kubelet, attributor: KubernetesAttributor) -> None:
    kubelet.implemented = False
    with pytest.raises(AttributionError, match="no pod-resources API v1"):
        attributor.read(DEVICES)


def test_a_dead_socket(tmp_path: Path, attributor: KubernetesAttributor) -> None:
    (tmp_path / "kubelet.sock").touch()
    with pytest.raises(AttributionError, match=r"no answer on|did not answer"):
        attributor.read(DEVICES)
