"""Pods that hold GPUs, as the kubelet lists them."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from typing import Protocol

from exporter.attribution.holdings import Allocations, Holding, Sharing, Workload
from exporter.attribution.kubernetes.device_ids import Resolver, parse
from exporter.attribution.kubernetes.pod_resources import Grant
from exporter.model import Device, Entity

log = logging.getLogger(__name__)
RESOURCES = ("nvidia.com/*",)
DRA_DRIVER = "gpu.nvidia.com"
MOST_SAID = 1000  # ids that are remembered as said

UuidOf = Callable[[str], "str | None"]
"""POOL/DEVICE of a resource slice -> UUID of the GPU or MIG device; None: not known."""


class Lister(Protocol):
    """Where the grants come from."""

    def list(self) -> list[Grant]:
        """All of them now."""

    def close(self) -> None:
        """Free what it holds."""


def _no_slices(device: str) -> str | None:
    return None


class KubernetesAttributor:
    """Joins the kubelet's device ids with the devices of this node."""

    name = "kubernetes"

    def __init__(
        self,
        kubelet: Lister,
        *,
        resources: Sequence[str] = RESOURCES,
        replicas: Sharing = Sharing.TIME_SLICED,
        uuid_of: UuidOf = _no_slices,
    ) -> None:
        """``resources``: globs over resource names. ``replicas``: how this cluster shares a GPU among replicas (an id
        does not tell time slicing from MPS). ``uuid_of``: for dynamic resources, from the API server."""
        self._kubelet, self._resources, self._replicas, self._uuid_of = kubelet, resources, replicas, uuid_of
        self._said: set[str] = set()

    def read(self, devices: Sequence[Device]) -> Allocations:
        """Raises AttributionError when the kubelet cannot be asked."""
        resolver, unresolved = Resolver(devices), Counter[str]()
        found: dict[tuple[Entity, Workload], tuple[bool, bool]] = {}  # -> (replica, of a claim)
        for grant in self._kubelet.list():
            if not self._is_gpu(grant):
                continue
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
                Holding(entity, workload, self._sharing(entity, replica, claimed, holders[entity]))
                for (entity, workload), (replica, claimed) in sorted(
                    found.items(), key=lambda i: (str(i[0][0]), i[0][1])
                )
            ],
            unresolved,
        )

    def close(self) -> None:
        self._kubelet.close()

    def _is_gpu(self, grant: Grant) -> bool:
        if grant.claim:
            return grant.resource == DRA_DRIVER
        return any(fnmatchcase(grant.resource, glob) for glob in self._resources)

    def _resolve(self, grant: Grant, resolver: Resolver, unresolved: Counter[str]) -> tuple[Entity, bool] | None:
        device = self._uuid_of(grant.device) if grant.claim else grant.device
        wanted = None if device is None else parse(device)
        entity = None if wanted is None else resolver.find(wanted)
        if wanted is not None and entity is not None:
            return entity, wanted.replica
        kind = "claimed_device" if device is None else "unknown_form" if wanted is None else "unknown_device"
        unresolved[kind] += 1
        self._say(kind, grant)
        return None

    def _say(self, kind: str, grant: Grant) -> None:
        """Each id once."""
        if grant.device not in self._said and len(self._said) < MOST_SAID:
            self._said.add(grant.device)
            pod = f"{grant.namespace}/{grant.pod}"
            log.warning("device %r (%s) of pod %s is no GPU here: %s", grant.device, grant.resource, pod, kind)

    def _sharing(self, entity: Entity, replica: bool, claimed: bool, holders: int) -> Sharing:
        if claimed and holders > 1:
            return Sharing.DRA_SHARED
        if replica or holders > 1:
            return self._replicas
        return Sharing.MIG if entity.gpu_instance is not None else Sharing.EXCLUSIVE
