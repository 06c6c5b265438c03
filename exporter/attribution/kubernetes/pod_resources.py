"""Asks the kubelet over its socket. A kubelet that restarts makes the socket anew: each failure opens a new channel."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from exporter.attribution.holdings import AttributionError
from exporter.attribution.kubernetes.proto import SERVICE, messages

log = logging.getLogger(__name__)
SOCKET = Path("/var/lib/kubelet/pod-resources/kubelet.sock")
DEADLINE = 5.0  # seconds for one answer
MOST_BYTES = 16 * 1024 * 1024  # of one answer: 500 pods take about 0.2 MiB
_MOUNT = "mount /var/lib/kubelet/pod-resources read-only into the container (chart: collectors.kubernetes.enabled)"


@dataclass(frozen=True, slots=True)
class Grant:
    """One device id, or one allocated device of a claim, that a container was given."""

    namespace: str
    pod: str
    container: str
    resource: str  # such as nvidia.com/gpu; of a claim the driver's name
    device: str  # the device id; of a claim POOL/DEVICE
    claim: str = ""  # NAMESPACE/NAME of the resource claim
    cdi: tuple[str, ...] = ()


class PodResources:
    """A client; used by one thread."""

    def __init__(self, socket: Path = SOCKET, deadline: float = DEADLINE) -> None:
        """AttributionError when grpc is not installed."""
        try:
            import grpc
        except ImportError as error:
            raise AttributionError(
                f"grpc is not installed ({error})", "pip install 'honest-gpu-exporter[kubernetes]'"
            ) from error
        self._grpc, self._messages = grpc, messages()
        self._socket, self._deadline = socket, deadline
        self._channel: Any = None
        self._tells_allocatable = True  # this kubelet, as far as known

    def list(self) -> list[Grant]:
        """All grants of all containers. Raises AttributionError."""
        if not self._socket.exists():
            self.close()
            raise AttributionError(f"the kubelet's socket {self._socket} does not exist", _MOUNT)
        try:
            answer = self._call("List", self._messages.request, self._messages.response)
        except self._grpc.RpcError as error:
            self.close()
            raise AttributionError(*self._explain(error)) from error
        return [grant for pod in answer.pod_resources for grant in _grants(pod)]

    def allocatable(self) -> Sequence[tuple[str, str]] | None:
        """(resource, device id) of all healthy devices that device plugins offer, held or not.

        None: this kubelet does not tell (before 1.23 it must be switched on), or not now. Never raises: who holds what
        does not hang on it.
        """
        if not self._tells_allocatable:
            return None
        messages = self._messages
        try:
            answer = self._call("GetAllocatableResources", messages.allocatable_request, messages.allocatable_response)
        except self._grpc.RpcError as error:
            self._tells_allocatable = error.code() is not self._grpc.StatusCode.UNIMPLEMENTED
            log.debug("the kubelet does not report allocatable devices: %s", error.details())
            return None
        return [(each.resource_name, device) for each in answer.devices for device in each.device_ids]

    def close(self) -> None:
        """Close the channel; the next call opens a new one, perhaps to a newer kubelet."""
        self._tells_allocatable = True
        if self._channel is not None:
            self._channel.close()
            self._channel = None

    def _call(self, name: str, request: Any, response: Any) -> Any:
        """The answer. Raises RpcError."""
        if self._channel is None:
            options = [("grpc.max_receive_message_length", MOST_BYTES), ("grpc.enable_http_proxy", 0)]
            self._channel = self._grpc.insecure_channel(f"unix://{self._socket.absolute()}", options=options)
        call = self._channel.unary_unary(
            f"/{SERVICE}/{name}",
            request_serializer=request.SerializeToString,
            response_deserializer=response.FromString,
        )
        return call(request(), timeout=self._deadline)

    def _explain(self, error: Any) -> tuple[str, str]:
        code, codes = error.code(), self._grpc.StatusCode
        if code is codes.DEADLINE_EXCEEDED:
            return f"the kubelet did not answer within {self._deadline:g} s", "systemctl status kubelet"
        if code is codes.UNIMPLEMENTED:
            return "the kubelet has no pod-resources API v1", "Kubernetes 1.20 or newer"
        if code is codes.RESOURCE_EXHAUSTED:
            return f"the kubelet limits requests for now, or its answer is larger than {MOST_BYTES} bytes", ""
        if code is codes.UNAVAILABLE:
            return f"no answer on {self._socket}: {error.details()}", f"{_MOUNT}; check its permissions"
        return f"the kubelet returned {code.name}: {error.details()}", ""


def _grants(pod: Any) -> list[Grant]:
    made = []
    for container in pod.containers:
        who = (pod.namespace, pod.name, container.name)
        made += [Grant(*who, each.resource_name, device) for each in container.devices for device in each.device_ids]
        for claim in container.dynamic_resources:
            name = f"{claim.claim_namespace}/{claim.claim_name}"
            for each in claim.claim_resources:
                cdi = tuple(device.name for device in each.cdi_devices)
                made.append(Grant(*who, each.driver_name, f"{each.pool_name}/{each.device_name}", name, cdi))
    return made
