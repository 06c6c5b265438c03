"""The messages of the kubelet's pod-resources API v1, built from the numbers of their fields.

Source of the numbers: kubernetes/kubelet, pkg/apis/podresources/v1/api.proto. Only what is read here is declared: other
fields of a newer kubelet are kept aside by protobuf and do no harm. The call Get is not declared: it gives for one pod
by name what List gives for all of them, and the names come from List.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

SERVICE = "v1.PodResourcesLister"
_STRING = ""
# message -> field -> (number, type: a text, or another message; lists all but names)
_MESSAGES: Mapping[str, Mapping[str, tuple[int, str, bool]]] = {
    "ListPodResourcesRequest": {},
    "AllocatableResourcesRequest": {},
    "AllocatableResourcesResponse": {"devices": (1, "ContainerDevices", True)},
    "ListPodResourcesResponse": {"pod_resources": (1, "PodResources", True)},
    "PodResources": {
        "name": (1, _STRING, False),
        "namespace": (2, _STRING, False),
        "containers": (3, "ContainerResources", True),
    },
    "ContainerResources": {
        "name": (1, _STRING, False),
        "devices": (2, "ContainerDevices", True),
        "dynamic_resources": (5, "DynamicResource", True),
    },
    "ContainerDevices": {"resource_name": (1, _STRING, False), "device_ids": (2, _STRING, True)},
    "DynamicResource": {
        "claim_name": (2, _STRING, False),
        "claim_namespace": (3, _STRING, False),
        "claim_resources": (4, "ClaimResource", True),
    },
    "ClaimResource": {
        "cdi_devices": (1, "CDIDevice", True),
        "driver_name": (2, _STRING, False),
        "pool_name": (3, _STRING, False),
        "device_name": (4, _STRING, False),
    },
    "CDIDevice": {"name": (1, _STRING, False)},
}


@dataclass(frozen=True)
class Messages:
    """The message classes that a client or server names."""

    request: Any
    response: Any
    allocatable_request: Any
    allocatable_response: Any


def messages() -> Messages:
    """Built in a pool of their own, so that another copy in the process does no harm. Imports protobuf."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    file = descriptor_pb2.FileDescriptorProto(name="podresources.proto", package="v1", syntax="proto3")
    kinds = descriptor_pb2.FieldDescriptorProto
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for field, (number, kind, repeated) in fields.items():
            added = message.field.add(name=field, number=number)
            added.label = kinds.LABEL_REPEATED if repeated else kinds.LABEL_OPTIONAL
            added.type = kinds.TYPE_MESSAGE if kind else kinds.TYPE_STRING
            if kind:
                added.type_name = f".v1.{kind}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)

    def made(name: str) -> Any:
        return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"v1.{name}"))

    return Messages(
        made("ListPodResourcesRequest"),
        made("ListPodResourcesResponse"),
        made("AllocatableResourcesRequest"),
        made("AllocatableResourcesResponse"),
    )
