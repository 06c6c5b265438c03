"""What the API server adds to the kubelet's list: which pods have ended, names by UID, labels, resource slices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from exporter.attribution.background import SourceHealth
from exporter.attribution.holdings import Workload
from exporter.attribution.kubernetes.pod_facts import PodFacts
from exporter.attribution.kubernetes.slices import Slice, uuid_of

if TYPE_CHECKING:  # the kubelet's list alone needs no client of the API server, which loads ssl and http.client
    from exporter.attribution.kubernetes.following import Following

PODS = "kubernetes_api"
PODS_PATH = "/api/v1/pods"
SLICES = "kubernetes_slices"


class Cluster:
    """Asked from any thread; never waits. Where it knows nothing, the kubelet's word stands."""

    def __init__(self, pods: Following[PodFacts] | None = None, slices: Following[Slice] | None = None) -> None:
        self._pods, self._slices = pods, slices
        self._indexed: tuple[Mapping[tuple[str, str], PodFacts], Mapping[str, PodFacts]] = ({}, {})

    def start(self) -> None:
        for each in self._followed():
            each.start()

    def stop(self, timeout: float) -> None:
        for each in self._followed():
            each.stop(timeout / 2)

    @property
    def health(self) -> tuple[SourceHealth, ...]:
        return tuple(each.health for each in self._followed())

    def holds(self, namespace: str, pod: str, container: str) -> bool:
        """False where it is known to have ended."""
        facts = self._pod(namespace, pod)
        return facts is None or facts.holds(container)

    def labels(self, namespace: str, pod: str) -> Mapping[str, str]:
        """What is wanted of a pod beyond its name."""
        facts = self._pod(namespace, pod)
        return {} if facts is None else facts.labels

    def workload(self, uid: str, container_id: str) -> Workload | None:
        """The container that a control group names; without ``container`` where its id is not known (yet)."""
        facts = self._by_uid().get(uid)
        if facts is None:
            return None
        container = facts.containers.get(container_id, facts.only)
        return Workload(namespace=facts.namespace, pod=facts.name, container=container)

    def uuid_of(self, device: str) -> str | None:
        """UUID of POOL/DEVICE; None: not known."""
        return None if self._slices is None else uuid_of(self._slices.objects.values(), device)

    def _followed(self) -> Sequence[Following[PodFacts] | Following[Slice]]:
        return [each for each in (self._pods, self._slices) if each is not None]

    def _pod(self, namespace: str, pod: str) -> PodFacts | None:
        return None if self._pods is None else self._pods.objects.get((namespace, pod))

    def _by_uid(self) -> Mapping[str, PodFacts]:
        objects = {} if self._pods is None else self._pods.objects
        indexed = self._indexed
        if indexed[0] is not objects:
            indexed = (objects, {uid: facts for facts in objects.values() for uid in facts.uids})
            self._indexed = indexed
        return indexed[1]
