"""Device ids as device plugins make them, and which device of this node each means. Nothing is matched by prefix.

Forms: NVIDIA's plugin ``GPU-<uuid>``, ``MIG-<uuid>``, with ``::n`` (or an empty one) for replicas; before driver R470
``MIG-GPU-<uuid>/gi/ci``; GKE's plugin ``nvidiaN``, ``nvidiaN/giM``, ``nvidiaN/vgpuM``, ``nvidiaN/giM/vgpuM``, where N
is the minor number of /dev/nvidiaN and not the driver's index.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from exporter.model import Device, Entity

_UUID = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_PLUGIN = re.compile(rf"(?P<uuid>(?:GPU|MIG)-{_UUID})(?P<replica>::\d*)?")
_OLD_MIG = re.compile(rf"MIG-(?P<uuid>GPU-{_UUID})/(?P<gi>\d{{1,4}})/\d{{1,4}}(?P<replica>::\d*)?")
_GKE = re.compile(r"nvidia(?P<minor>\d{1,4})(?:/gi(?P<gi>\d{1,4}))?(?P<replica>/vgpu\d{1,4})?")


@dataclass(frozen=True, slots=True)
class DeviceId:
    """What an id says: a UUID (of a GPU or a MIG device) or a minor number, perhaps a GPU instance."""

    uuid: str = ""
    minor: str = ""
    gpu_instance: int | None = None
    replica: bool = False  # one of several shares of the device


def parse(text: str) -> DeviceId | None:
    """None for what no known plugin makes."""
    if match := _PLUGIN.fullmatch(text):
        return DeviceId(uuid=match["uuid"], replica=_is_replica(match["replica"]))
    if match := _OLD_MIG.fullmatch(text):
        return DeviceId(uuid=match["uuid"], gpu_instance=int(match["gi"]), replica=_is_replica(match["replica"]))
    if match := _GKE.fullmatch(text):
        instance = None if match["gi"] is None else int(match["gi"])
        return DeviceId(minor=str(int(match["minor"])), gpu_instance=instance, replica=bool(match["replica"]))
    return None


def _is_replica(suffix: str | None) -> bool:
    return bool(suffix and suffix != "::")


class Resolver:
    """The devices of this node, by everything an id may name them with."""

    def __init__(self, devices: Iterable[Device]) -> None:
        self._by_uuid: dict[str, Entity] = {}
        self._by_minor: dict[tuple[str, int | None], Entity] = {}
        self._by_instance: dict[tuple[str, int], Entity] = {}
        for device in devices:
            entity = device.entity
            if entity.gpu_instance is None:
                self._by_uuid[entity.uuid.lower()] = entity
            else:
                self._by_instance[entity.uuid.lower(), entity.gpu_instance] = entity
                if device.mig_uuid:
                    self._by_uuid[device.mig_uuid.lower()] = entity
            if device.minor:
                self._by_minor[device.minor, entity.gpu_instance] = entity

    def find(self, wanted: DeviceId) -> Entity | None:
        """None when there is no such device here."""
        if wanted.minor:
            return self._by_minor.get((wanted.minor, wanted.gpu_instance))
        if wanted.gpu_instance is not None:
            return self._by_instance.get((wanted.uuid.lower(), wanted.gpu_instance))
        return self._by_uuid.get(wanted.uuid.lower())
