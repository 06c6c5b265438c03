"""Pods that hold GPUs, as the kubelet lists them."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from typing import Protocol

from exporter.attribution.holdings import Allocations, Holding, Sharing, Workload
from exporter.attribution.kubernetes.cluster import Cluster
from exporter.attribution.kubernetes.device_ids import Resolver, parse
from exporter.attribution.kubernetes.pod_resources import Grant
from exporter.attribution.kubernetes.slices import DRIVER
from exporter.background.once import Reported
from exporter.model import Device, Entity

log = logging.getLogger(__name__)
RESOURCES = ("nvidia.com/*",)
CLAIMED = "claimed_device"  # a GPU for certain, where other ids may be of what else is called nvidia.com/...
MOST_REPORTED = 1000  # ids that are written to the log
ALLOCATABLE_EVERY = 60.0  # seconds: it changes when a GPU falls sick or a plugin is restarted


class Lister(Protocol):
    """Where the grants come from."""

    def list(self) -> list[Grant]:
        """All of them now."""

    def allocatable(self) -> Sequence[tuple[str, str]] | None:
        """(resource, device id) of what may be handed out; None: not known."""

    def close(self) -> None:
        """Free what it holds."""


class KubernetesAttributor:
    """Joins the kubelet's device ids with the devices of this node."""

    name = "kubernetes"

    def __init__(
        self,
        kubelet: Lister,
        *,
        resources: Sequence[str] = RESOURCES,
        replicas: Sharing = Sharing.TIME_SLICED,
        cluster: Cluster | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """``resources``: globs over resource names. ``replicas``: how this cluster shares a GPU among replicas (an id
        does not tell time slicing from MPS). ``cluster``: what the API server adds."""
        self._kubelet, self._resources, self._replicas = kubelet, resources, replicas
        self._cluster = cluster or Cluster()
        self._monotonic = monotonic
        self._reported: Reported[str] = Reported(MOST_REPORTED)
        self._offered: tuple[float, list[str] | None] = (float("-inf"), None)

    def read(self, devices: Sequence[Device]) -> Allocations:
        """Raises AttributionError when the kubelet cannot be asked."""
        resolver, unresolved = Resolver(devices), Counter[str]()
        found: dict[tuple[Entity, Workload], tuple[bool, bool]] = {}  # -> (replica, of a claim)
        for grant in self._kubelet.list():
            if not self._is_gpu(grant) or not self._cluster.holds(grant.namespace, grant.pod, grant.container):
                continue  # the kubelet of before Kubernetes 1.34 lists pods that have ended
            held = self._resolve(grant, resolver, unresolved)
            if held is not None:
                entity, replica = held
                workload = Workload(grant.namespace, grant.pod, grant.container)
                before = found.get((entity, workload), (False, False))
                found[entity, workload] = (before[0] or replica, before[1] or bool(grant.claim))
        holders = Counter(entity for entity, _ in found)
        return Allocations(
            self.name,
            [
                Holding(
                    entity,
                    workload,
                    self._sharing(entity, replica, claimed, holders[entity]),
                    self._cluster.labels(workload.namespace, workload.pod),
                )
                for (entity, workload), (replica, claimed) in sorted(
                    found.items(), key=lambda i: (str(i[0][0]), i[0][1])
                )
            ],
            unresolved,
            self._allocatable(resolver),
            all_told=not unresolved[CLAIMED],
        )

    def close(self) -> None:
        self._kubelet.close()

    def _allocatable(self, resolver: Resolver) -> frozenset[Entity] | None:
        """None where no device plugin offers GPUs: with dynamic resources that is as it should be."""
        now = self._monotonic()
        if now - self._offered[0] >= ALLOCATABLE_EVERY:
            offered = self._kubelet.allocatable()
            ids = None if offered is None else [device for resource, device in offered if self._matches(resource)]
            self._offered = (now, ids or None)
        if self._offered[1] is None:
            return None
        found = (resolver.find(wanted) for device in self._offered[1] if (wanted := parse(device)) is not None)
        return frozenset(entity for entity in found if entity is not None)

    def _is_gpu(self, grant: Grant) -> bool:
        return grant.resource == DRIVER if grant.claim else self._matches(grant.resource)

    def _matches(self, resource: str) -> bool:
        return any(fnmatchcase(resource, glob) for glob in self._resources)

    def _resolve(self, grant: Grant, resolver: Resolver, unresolved: Counter[str]) -> tuple[Entity, bool] | None:
        device = self._cluster.uuid_of(grant.device) if grant.claim else grant.device
        wanted = None if device is None else parse(device)
        entity = None if wanted is None else resolver.find(wanted)
        if wanted is not None and entity is not None:
            return entity, wanted.replica
        kind = CLAIMED if device is None else "unknown_form" if wanted is None else "unknown_device"
        unresolved[kind] += 1
        self._say(kind, grant)
        return None

    def _say(self, kind: str, grant: Grant) -> None:
        """Each id once."""
        if self._reported.first(grant.device):
            pod = f"{grant.namespace}/{grant.pod}"
            log.warning(
                "device %r (%s) of pod %s is not a GPU of this node: %s", grant.device, grant.resource, pod, kind
            )

    def _sharing(self, entity: Entity, replica: bool, claimed: bool, holders: int) -> Sharing:
        if claimed and holders > 1:
            return Sharing.DRA_SHARED
        if replica or holders > 1:
            return self._replicas
        return Sharing.MIG if entity.gpu_instance is not None else Sharing.EXCLUSIVE
