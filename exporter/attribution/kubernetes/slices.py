"""Which device of a claim is which GPU: what the DRA driver publishes of this node, in ResourceSlices.

resource.k8s.io: v1 and v1beta2 put a device's attributes into it, v1beta1 below ``basic``. A driver that changes a pool
publishes it again under a higher generation, and only the highest counts. Devices without the attribute ``uuid`` (MIG
devices that are made only when they are claimed) are not resolved: nothing tells which instance one became.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

DRIVER = "gpu.nvidia.com"
PATHS = tuple(f"/apis/resource.k8s.io/{version}/resourceslices" for version in ("v1", "v1beta2", "v1beta1"))
MOST_DEVICES = 128  # of one slice, by the API


@dataclass(frozen=True, slots=True)
class Slice:
    """Some of the devices of a pool."""

    pool: str
    generation: int
    uuids: Mapping[str, str]  # name of the device -> UUID of the GPU or MIG device


def selector(node: str) -> str:
    """Of this node's slices."""
    return f"spec.nodeName={node},spec.driver={DRIVER}"


def resource_slice(document: Mapping[str, Any], node: str) -> Slice | None:
    """None for one of another driver or node."""
    spec = document.get("spec")
    if not isinstance(spec, dict) or spec.get("driver") != DRIVER or spec.get("nodeName") != node:
        return None
    pool = spec.get("pool")
    if not isinstance(pool, dict) or not isinstance(pool.get("name"), str):
        return None
    generation, devices = pool.get("generation"), spec.get("devices")
    uuids = {}
    for device in devices[:MOST_DEVICES] if isinstance(devices, list) else ():
        uuid = _uuid(device)
        if uuid is not None:
            uuids[device["name"]] = uuid
    return Slice(pool["name"], generation if isinstance(generation, int) else 0, uuids)


def uuid_of(slices: Iterable[Slice], device: str) -> str | None:
    """``device`` is POOL/DEVICE, and a pool's name may have slashes."""
    pool, _, name = device.rpartition("/")
    of_pool = [each for each in slices if each.pool == pool]
    newest = max((each.generation for each in of_pool), default=0)
    found = {each.uuids[name] for each in of_pool if each.generation == newest and name in each.uuids}
    return found.pop() if len(found) == 1 else None


def _uuid(device: object) -> str | None:
    if not isinstance(device, dict) or not isinstance(device.get("name"), str):
        return None
    basic = device.get("basic")
    holder = basic if isinstance(basic, dict) else device
    attributes = holder.get("attributes")
    if not isinstance(attributes, dict):
        return None
    value = attributes.get("uuid") or attributes.get(f"{DRIVER}/uuid")
    text = value.get("string") if isinstance(value, dict) else None
    return text if isinstance(text, str) else None
