"""What an API server says: any JSON as pods, slices, lists and events, and any bytes over TLS."""

from __future__ import annotations

import contextlib
import json
import math
import socket
import ssl
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.attribution.holdings import AttributionError
from exporter.attribution.kubernetes.api_server import Absent, ApiServer, Gone
from exporter.attribution.kubernetes.cluster import PODS, PODS_PATH, Cluster
from exporter.attribution.kubernetes.credentials import Credentials
from exporter.attribution.kubernetes.following import Following
from exporter.attribution.kubernetes.pod_facts import PodFacts, Wanted, label_names, pod_facts
from exporter.attribution.kubernetes.slices import resource_slice, uuid_of
from exporter.metrics.family import labels
from tests.attribution.kubernetes.api_objects import UID, api_pod, api_slice
from tests.fuzz.budget import fuzzed
from tests.fuzz.mutation import mutated_bytes, mutated_json
from tests.fuzz.refusal import may_refuse
from tests.web.conftest import Authority

WANTED = Wanted(label_names(["app", "kueue.x-k8s.io/queue-name"]), uid=True, owner=True)
POD = api_pod(
    "train-0",
    "main",
    "sidecar",
    phase="Running",
    labels={"app": "train", "pod-template-hash": "5d", "kueue.x-k8s.io/queue-name": "gold"},
    annotations={"kubernetes.io/config.hash": "a" * 32},
    owner=("batch/v1", "Job", "nightly-29411160"),
    policy="OnFailure",
    terminated={"sidecar": 0},
)
POD["spec"]["initContainers"] = [{"name": "fetch", "restartPolicy": "Always"}]
POD["status"]["initContainerStatuses"] = [{"name": "fetch", "state": {"terminated": {"exitCode": 1}}}]
SLICES = [
    api_slice("s", {"gpu-0": "GPU-1", "gpu-1-mig": None}, version=version, generation=2)
    for version in ("v1", "v1beta1")
]
TIMES = ("0001-01-01T00:00:00", "9999-12-31T23:59:59Z", "0001-01-01T00:00:00+23:59", "2026-12-01", "٢٠٢٦-12-01", "")


def assert_small(facts: PodFacts) -> None:
    """Of types that labels and look-ups rely on; values of labels are bounded."""
    texts = (facts.namespace, facts.name, facts.only, *facts.uids, *facts.gone)
    assert all(type(text) is str for text in texts), facts
    assert all(type(text) is str for pair in facts.containers.items() for text in pair), facts
    assert all(type(value) is str and 0 < len(value) <= 253 for value in facts.labels.values()), facts
    assert type(facts.holds("main")) is bool
    labels(**facts.labels)


@fuzzed(300)
@given(mutated_json(POD))
def test_any_pod(pod: Any) -> None:
    facts = pod_facts(pod, WANTED) if isinstance(pod, dict) else None
    if facts is not None:
        assert_small(facts)


@pytest.mark.parametrize("time", TIMES)
def test_any_creation_time(time: str) -> None:
    pod = {**POD, "metadata": {**POD["metadata"], "creationTimestamp": time}}
    facts = pod_facts(pod, WANTED)
    assert facts is not None
    assert facts.labels["owner_name"] == "nightly-29411160"


@fuzzed(200)
@given(mutated_json(SLICES))
def test_any_slices(documents: Any) -> None:
    found = [
        each
        for document in (documents if isinstance(documents, list) else ())
        if isinstance(document, dict) and (each := resource_slice(document, "node-1")) is not None
    ]
    for device in ("node-1/gpu-0", "/", "", "node-1/gpu-1-mig"):
        uuid = uuid_of(found, device)
        assert uuid is None or type(uuid) is str


class Said:
    """A server that says what it was given."""

    def __init__(self, listed: Any, events: Sequence[Any]) -> None:
        self._listed, self._events = listed, events

    def list(self, path: str, selector: str) -> Any:
        return self._listed

    def watch(self, path: str, selector: str, version: str) -> Iterator[Any]:
        yield from (event for event in self._events if isinstance(event, dict))

    def interrupt(self) -> None:
        """Nothing is under way."""


LIST = {"kind": "PodList", "metadata": {"resourceVersion": "7"}, "items": [POD, api_pod("idle", number=2)]}
EVENTS = [
    {"type": "OPENED"},
    {"type": "ADDED", "object": api_pod("late", number=3)},
    {"type": "MODIFIED", "object": {**POD, "status": {"phase": "Succeeded"}}},
    {"type": "DELETED", "object": POD},
    {"type": "BOOKMARK", "object": {"kind": "Pod", "metadata": {"resourceVersion": "9"}}},
]


def one_round(listed: Any, events: Any) -> Following[PodFacts]:
    """A copy that has not begun, and will not wait for another round."""
    server = Said(listed if isinstance(listed, dict) else {}, events if isinstance(events, list) else [])
    copy = Following(PODS, server, [PODS_PATH], "", lambda pod: pod_facts(pod, WANTED), lambda: 1.0, lambda: 2.0)
    copy.stop(0)
    return copy


@fuzzed(300)
@given(mutated_json(LIST), mutated_json(EVENTS))
def test_any_list_and_events(listed: Any, events: Any) -> None:
    """What a thread of its own would log as unforeseen is a failure here."""
    if isinstance(listed, dict) and not isinstance(listed.get("items"), list):
        listed = {**listed, "items": None}  # others: the test below
    copy = one_round(listed, events)
    with may_refuse(AttributionError) as told:
        copy._follow()
    assert all(len(text) < 1000 for text in told)
    cluster = Cluster(copy)
    for (namespace, pod), facts in copy.objects.items():
        assert_small(facts)
        cluster.holds(namespace, pod, "main")
        cluster.labels(namespace, pod)
    workload = cluster.workload(UID.format(1), "x")
    assert workload is None or all(type(text) is str for text in workload)


@pytest.mark.parametrize("items", [1, True, 0.5])
def test_items_that_are_no_list(items: Any) -> None:
    with may_refuse(AttributionError):
        one_round({**LIST, "items": items}, EVENTS)._follow()


class RawApiServer:
    """Answers each question with the bytes that it was given, over TLS, and ends the connection."""

    def __init__(self, folder: Path) -> None:
        authority = Authority(folder, "cluster")
        identity, token = authority.issue("kube-apiserver"), folder / "token"
        token.write_text("secret")
        self.credentials = Credentials(token, authority.cert)
        self.answer = b""
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(identity.cert, identity.key)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()

    def _serve(self) -> None:
        while True:
            try:
                accepted, _ = self._listening.accept()
            except OSError:
                return
            with contextlib.suppress(OSError), self._context.wrap_socket(accepted, server_side=True) as sock:
                asked = b""
                while b"\r\n\r\n" not in asked and (piece := sock.recv(65536)):
                    asked += piece
                sock.sendall(self.answer)


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RawApiServer]:
    server = RawApiServer(tmp_path_factory.mktemp("cluster"))
    yield server
    server.close()


def chunked(*pieces: bytes) -> bytes:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    return head + b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in (*pieces, b""))


LISTED = chunked(json.dumps(LIST).encode())
WATCHED = chunked(*(json.dumps(event).encode() + b"\n" for event in EVENTS))
REFUSED = b'HTTP/1.1 403 Forbidden\r\nContent-Length: 36\r\n\r\n{"code": 403, "message": "pods: no"}\n'
odd_answers = st.sampled_from(
    [
        b"",
        b"HTTP/1.1 200 OK\r\n\r\n" + b"[" * 100_000,
        b"HTTP/1.1 200 OK\r\n\r\n" + b"9" * 10_000,
        b"HTTP/1.1 200 OK\r\n\r\n" + b'{"a":' * 50_000 + b"\n",
        b'HTTP/1.1 200 OK\r\n\r\n{"type": "ERROR", "object": {"code": 1e999, "message": 5}}\n',
        b'HTTP/1.1 200 OK\r\n\r\n{"type": "ERROR", "object": []}\n',
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n{}",
        b"HTTP/1.1 100 Continue\r\n\r\n" * 200,
        b"HTTP/1.1 301 Moved\r\nLocation: http://127.0.0.1:1/\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 1000 + b"\r\n{}",
    ]
)


@fuzzed()
@given(
    st.one_of(
        mutated_bytes(LISTED), mutated_bytes(WATCHED), mutated_bytes(REFUSED), st.binary(max_size=60), odd_answers
    )
)
def test_any_answer(raw: RawApiServer, answer: bytes) -> None:
    """A list, a watch, or a refusal that names the API server; what is said in it is bounded."""
    raw.answer = answer
    for ask in (
        lambda server: server.list(PODS_PATH, "spec.nodeName=node-1"),
        lambda server: list(server.watch(PODS_PATH, "spec.nodeName=node-1", "7")),
    ):
        server = ApiServer("127.0.0.1", raw.port, raw.credentials, connect=5.0, silence=5.0)
        with may_refuse(AttributionError, Absent, Gone) as told:
            assert isinstance(ask(server), dict | list)
        assert all(len(text) < 1000 and "secret" not in text for text in told), told


def test_a_chunk_longer_than_any_memory(raw: RawApiServer) -> None:
    raw.answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"f" * 100 + b"\r\n"
    server = ApiServer("127.0.0.1", raw.port, raw.credentials)
    with may_refuse(AttributionError):
        server.list(PODS_PATH, "")
    with may_refuse(AttributionError):
        list(server.watch(PODS_PATH, "", "7"))


def test_a_list_without_end_is_not_taken_into_memory(raw: RawApiServer) -> None:
    piece = b" " * (1 << 20)
    raw.answer = chunked(*[piece] * 64)
    server = ApiServer("127.0.0.1", raw.port, raw.credentials)
    with pytest.raises(AttributionError, match="longer than"):
        server.list(PODS_PATH, "")
    with pytest.raises(AttributionError, match="longer than"):
        list(server.watch(PODS_PATH, "", "7"))


def test_numbers_that_are_none() -> None:
    for generation in (math.nan, math.inf, 10**400, -1, True, "2", None):
        document = api_slice("s", {"gpu-0": "GPU-1"}, version="v1")
        document["spec"]["pool"]["generation"] = generation
        found = resource_slice(document, "node-1")
        assert found is not None
        uuid_of([found], "node-1/gpu-0")
