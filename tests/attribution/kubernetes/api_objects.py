"""Objects as an API server gives them, cut to what matters, with the clutter that must not."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]
UID = "3b1f0c2e-7a55-4d0e-9a43-0d9c5f3b2a{:02d}"
CONTAINER = "{:064x}"


def api_pod(name: str, *containers: str, number: int = 1, phase: str = "Running", **more: Any) -> Json:
    """A pod of namespace ml on node-1. ``more``: labels, annotations, owner, policy, deleted, terminated (name ->
    exit code), namespace."""
    names = containers or ("main",)
    owner = more.get("owner")
    metadata: Json = {
        "name": name,
        "namespace": more.get("namespace", "ml"),
        "uid": UID.format(number),
        "creationTimestamp": "2026-12-01T10:00:30Z",
        "labels": more.get("labels", {}),
        "annotations": more.get("annotations", {}),
        "managedFields": [{"manager": "kubelet", "operation": "Update", "fieldsV1": {"f:status": {}}}],
    }
    if owner is not None:
        api, kind, owner_name = owner
        metadata["ownerReferences"] = [
            {"apiVersion": api, "kind": kind, "name": owner_name, "uid": "x", "controller": True}
        ]
    if more.get("deleted"):
        metadata |= {"deletionTimestamp": "2026-12-01T11:00:00Z", "deletionGracePeriodSeconds": 30}
    statuses = []
    for place, each in enumerate(names):
        code = more.get("terminated", {}).get(each)
        state: Json = {"running": {"startedAt": "2026-12-01T10:00:31Z"}}
        if code is not None:
            state = {"terminated": {"exitCode": code, "reason": "Completed" if code == 0 else "Error"}}
        identity = f"containerd://{CONTAINER.format(16 * number + place)}"
        statuses.append({"name": each, "containerID": identity, "state": state, "lastState": {}, "ready": True})
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {
            "nodeName": "node-1",
            "restartPolicy": more.get("policy", "Always"),
            "containers": [
                {"name": each, "image": "train:1", "resources": {"limits": {"nvidia.com/gpu": "1"}}} for each in names
            ],
        },
        "status": {"phase": phase, "containerStatuses": statuses, "qosClass": "Burstable"},
    }


def api_slice(name: str, devices: dict[str, str | None], *, version: str, generation: int = 1, **more: Any) -> Json:
    """A ResourceSlice of node-1; ``devices``: name -> UUID, None for a MIG device that is made on demand."""
    pool, node = more.get("pool", "node-1"), more.get("node", "node-1")
    listed = []
    for device, uuid in devices.items():
        attributes: Json = {
            "type": {"string": "gpu" if uuid and uuid.startswith("GPU-") else "mig"},
            "productName": {"string": "NVIDIA H100 80GB HBM3"},
            "cudaComputeCapability": {"version": "9.0.0"},
            "resource.kubernetes.io/pcieRoot": {"string": "pci0000:03"},
        }
        if uuid is not None:
            attributes["uuid"] = {"string": uuid}
        inner = {"attributes": attributes, "capacity": {"memory": {"value": "81559Mi"}}}
        listed.append({"name": device, "basic": inner} if version == "v1beta1" else {"name": device, **inner})
    return {
        "apiVersion": f"resource.k8s.io/{version}",
        "kind": "ResourceSlice",
        "metadata": {"name": name, "uid": name},
        "spec": {
            "driver": more.get("driver", "gpu.nvidia.com"),
            "nodeName": node,
            "pool": {"name": pool, "generation": generation, "resourceSliceCount": 1},
            "devices": listed,
        },
    }
