"""The kubelet's answers: any bytes through the real client, over a real socket and in the real messages."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from concurrent import futures
from pathlib import Path
from typing import Any

import grpc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.attribution.holdings import AttributionError
from exporter.attribution.kubernetes.attributor import KubernetesAttributor
from exporter.attribution.kubernetes.device_ids import parse
from exporter.attribution.kubernetes.pod_resources import MOST_BYTES, Grant, PodResources
from exporter.attribution.kubernetes.proto import SERVICE, messages
from exporter.model import Device, Entity
from tests.attribution.kubernetes.kubelet import claiming, pod
from tests.fuzz.budget import fuzzed
from tests.fuzz.mutation import mutated_bytes, mutated_text
from tests.fuzz.refusal import may_refuse

UUID = "GPU-00000000-0000-0000-0000-000000000001"
PODS = [pod("train-0", UUID, f"{UUID}::3", "nvidia0/gi3"), claiming("claims", ("pool", "gpu-0")), pod("cpu")]
ANSWER = messages().response(pod_resources=PODS).SerializeToString()
OFFERED = [{"resource_name": "nvidia.com/gpu", "device_ids": [UUID, f"{UUID}::1", "nvidia0"]}]
ALLOCATABLE = messages().allocatable_response(devices=OFFERED).SerializeToString()
DEVICES = (Device(Entity(UUID), "0", minor="0"), Device(Entity(UUID, 3), "0", minor="0"))


class RawKubelet:
    """Answers with the bytes that it was given."""

    def __init__(self, socket: Path) -> None:
        self.answer = self.offered = b""
        handlers = {
            "List": grpc.unary_unary_rpc_method_handler(lambda *_: self.answer),
            "GetAllocatableResources": grpc.unary_unary_rpc_method_handler(lambda *_: self.offered),
        }
        self.server = grpc.server(futures.ThreadPoolExecutor(1), options=[("grpc.max_send_message_length", -1)])
        self.server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))
        self.server.add_insecure_port(f"unix://{socket}")
        self.server.start()


@pytest.fixture(scope="module")
def kubelet() -> Iterator[tuple[RawKubelet, PodResources]]:
    with tempfile.TemporaryDirectory() as folder:
        socket = Path(folder) / "kubelet.sock"
        running, client = RawKubelet(socket), PodResources(socket)
        yield running, client
        client.close()
        running.server.stop(0).wait()


odd_bytes = st.binary(max_size=60) | st.just(b"\x0b" * 5000) | st.just(b"\x0a\xff\xff\xff\xff\x0f")


@fuzzed()
@given(mutated_bytes(ANSWER) | odd_bytes, mutated_bytes(ALLOCATABLE) | odd_bytes)
def test_any_answer(kubelet: tuple[RawKubelet, PodResources], answer: bytes, offered: bytes) -> None:
    running, client = kubelet
    running.answer, running.offered = answer, offered
    here = {device.entity for device in DEVICES}
    with may_refuse(AttributionError) as told:
        found = KubernetesAttributor(client).read(DEVICES)
        assert found.allocatable is None or found.allocatable <= here
        for holding in found.holdings:
            assert holding.entity in here
            ", ".join(holding.workload).encode()
    assert all("kubelet" in text for text in told)


def test_an_answer_that_is_too_long_is_refused(kubelet: tuple[RawKubelet, PodResources]) -> None:
    running, client = kubelet
    running.answer = b"\x0a\x80\x80\x80\x08" + bytes(MOST_BYTES + 1000)
    with pytest.raises(AttributionError, match="larger than"):
        client.list()


class Listed:
    """A kubelet of grants, which offers what it granted."""

    def __init__(self, grants: list[Grant]) -> None:
        self.grants = grants

    def list(self) -> list[Grant]:
        return self.grants

    def allocatable(self) -> Sequence[tuple[str, str]]:
        return [(grant.resource, grant.device) for grant in self.grants]

    def close(self) -> None:
        """Nothing is held."""


ids = mutated_text(f"MIG-{UUID}/3/0::2", ("nvidia", "/gi", "/vgpu", "::", "GPU-", "²", "9" * 30, "\n")) | st.text(
    max_size=20
)
grants: Any = st.builds(Grant, *[st.text(max_size=8)] * 3, st.sampled_from(["nvidia.com/gpu", "x", "[", "*"]), ids)


@fuzzed()
@given(st.lists(grants, max_size=5))
def test_any_grants(listed: list[Grant]) -> None:
    found = KubernetesAttributor(Listed(listed)).read(DEVICES)
    assert len(found.holdings) + sum(found.unresolved.values()) <= len(listed)


@fuzzed()
@given(ids)
def test_any_device_id(text: str) -> None:
    found = parse(text)
    assert found is None or found.minor.isascii()
