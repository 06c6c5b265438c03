"""A real gRPC server on a unix socket that answers as a kubelet does."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from concurrent import futures
from pathlib import Path
from typing import Any

import grpc

from exporter.attribution.kubernetes.proto import SERVICE, messages


class Kubelet:
    """Serves the pods it is given, until it is stopped. ``hang``: answers nothing while it is set."""

    def __init__(self, socket: Path) -> None:
        self._socket = socket
        self._messages = messages()
        self._pods: list[dict[str, Any]] = []
        self.hang = threading.Event()
        self.implemented = True
        self._offered: list[dict[str, Any]] = []
        self.tells_allocatable = True
        self._server: Any = None

    def pods(self, pods: Iterable[dict[str, Any]]) -> None:
        self._pods = list(pods)

    def offers(self, *devices: str, resource: str = "nvidia.com/gpu") -> None:
        """What device plugins call healthy."""
        self._offered.append({"resource_name": resource, "device_ids": list(devices)})

    def start(self) -> None:
        self._socket.unlink(missing_ok=True)
        self._server = grpc.server(futures.ThreadPoolExecutor(2))
        handlers = {
            "List": grpc.unary_unary_rpc_method_handler(
                self._list,
                request_deserializer=self._messages.request.FromString,
                response_serializer=self._messages.response.SerializeToString,
            )
        }
        if self.tells_allocatable:
            handlers["GetAllocatableResources"] = grpc.unary_unary_rpc_method_handler(
                self._allocatable,
                request_deserializer=self._messages.allocatable_request.FromString,
                response_serializer=self._messages.allocatable_response.SerializeToString,
            )
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))
        self._server.add_insecure_port(f"unix://{self._socket}")
        self._server.start()

    def stop(self) -> None:
        self.hang.clear()
        self._server.stop(0).wait()
        self._socket.unlink(missing_ok=True)

    def _list(self, request: Any, context: Any) -> Any:
        if not self.implemented:
            context.abort(grpc.StatusCode.UNIMPLEMENTED, "unknown service v1.PodResourcesLister")
        while self.hang.is_set():
            if not context.is_active():
                break
            self.hang.wait(0.05)
            threading.Event().wait(0.02)
        return self._messages.response(pod_resources=self._pods)

    def _allocatable(self, request: Any, context: Any) -> Any:
        return self._messages.allocatable_response(devices=self._offered)


def pod(name: str, *devices: str, resource: str = "nvidia.com/gpu", namespace: str = "ml") -> dict[str, Any]:
    """One pod with one container."""
    held = [{"resource_name": resource, "device_ids": list(devices)}] if devices else []
    return {"name": name, "namespace": namespace, "containers": [{"name": "main", "devices": held}]}


def claiming(name: str, *devices: tuple[str, str], driver: str = "gpu.nvidia.com") -> dict[str, Any]:
    """One pod with a resource claim; devices are (pool, device)."""
    resources: Sequence[dict[str, Any]] = [
        {"driver_name": driver, "pool_name": pool, "device_name": device, "cdi_devices": [{"name": f"k8s.{device}"}]}
        for pool, device in devices
    ]
    claims = [{"claim_name": "gpus", "claim_namespace": "ml", "claim_resources": resources}]
    return {"name": name, "namespace": "ml", "containers": [{"name": "main", "dynamic_resources": claims}]}
