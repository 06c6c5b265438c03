"""The client against real TLS servers, good ones and bad ones; whole conversations are in test_following."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from exporter.attribution.holdings import AttributionError
from exporter.attribution.kubernetes.api_server import OPENED, Absent, ApiServer, Gone
from exporter.attribution.kubernetes.slices import PATHS
from tests.attribution.kubernetes.api_double import PODS, ApiDouble, api_server, status
from tests.attribution.kubernetes.api_objects import api_pod
from tests.attribution.kubernetes.raw_server import CHUNKED, RawServer, chunk, raw_server, whole
from tests.end_to_end.processes import wait_for

SELECTOR = "spec.nodeName=node-1"
Ask = Callable[[], object]
HANG = 60.0  # seconds that nobody waits for: a test that took them has failed


@pytest.fixture
def api(tmp_path: Path) -> Iterator[ApiDouble]:
    with api_server(tmp_path) as double:
        yield double


def client(server: ApiDouble | RawServer, connect: float = 5.0, silence: float = 5.0) -> ApiServer:
    return ApiServer("127.0.0.1", server.port, server.credentials, connect=connect, silence=silence)


def events(watch: Iterator[dict[str, Any]]) -> list[tuple[str, str]]:
    """Type and name of all that a watch brings until it ends."""
    return [(each["type"], each.get("object", {}).get("metadata", {}).get("name", "")) for each in watch]


def test_a_list_and_the_watch_after_it(api: ApiDouble) -> None:
    api.put(api_pod("a"))
    listed = client(api).list(PODS, SELECTOR)
    assert [item["metadata"]["name"] for item in listed["items"]] == ["a"]
    api.put(api_pod("b"))
    api.delete("a")
    watch = client(api).watch(PODS, SELECTOR, listed["metadata"]["resourceVersion"])
    assert next(watch)["type"] == OPENED
    seen = [next(watch) for _ in range(2)]
    assert [(each["type"], each["object"]["metadata"]["name"]) for each in seen] == [("ADDED", "b"), ("DELETED", "a")]
    api.cut()
    assert events(watch) == []  # the server has ended it, as it does every few minutes


def test_a_version_that_is_forgotten_is_gone(api: ApiDouble) -> None:
    api.forget()
    watch = client(api).watch(PODS, SELECTOR, "1")
    assert next(watch)["type"] == OPENED
    with pytest.raises(Gone):
        next(watch)
    api.refuse = 410  # said at once, before any event
    with pytest.raises(Gone):
        next(client(api).watch(PODS, SELECTOR, "1"))


def test_the_token_is_read_anew_for_each_question(api: ApiDouble) -> None:
    asking = client(api)
    asking.list(PODS, SELECTOR)
    api.token = "renewed"  # the server knows the new one, the file still has the old one
    with pytest.raises(AttributionError, match=r"rejected the token \(401\)") as raised:
        asking.list(PODS, SELECTOR)
    assert str(api.credentials.token) in raised.value.remedy
    api.rotate("renewed")
    asking.list(PODS, SELECTOR)


@pytest.mark.parametrize(
    ("path", "rule"),
    [
        (PODS, '{apiGroups: [""], resources: [pods], verbs: [list, watch]}'),
        (PATHS[0], '{apiGroups: ["resource.k8s.io"], resources: [resourceslices], verbs: [list, watch]}'),
    ],
)
def test_what_is_forbidden_names_the_rule_that_is_missing(api: ApiDouble, path: str, rule: str) -> None:
    api.refuse, api.says = 403, "not for you"
    asks: list[Ask] = [lambda: client(api).list(path, SELECTOR), lambda: next(client(api).watch(path, SELECTOR, "1"))]
    for ask in asks:
        with pytest.raises(AttributionError, match=r"\(403\): not for you") as raised:
            ask()
        assert rule in raised.value.remedy
        assert "apiServer.enabled" in raised.value.remedy


def test_a_collection_that_there_is_not(api: ApiDouble) -> None:
    with pytest.raises(Absent, match=PATHS[0]):
        client(api).list(PATHS[0], SELECTOR)


@pytest.mark.parametrize("says", [b"<html>gateway</html>", b'{"code": 502}', b"[]", b"\xff\xfe"])
def test_another_refusal_is_told_whatever_its_body(tmp_path: Path, says: bytes) -> None:
    answer = whole(says, "502 Bad Gateway")
    with raw_server(tmp_path, answer) as server, pytest.raises(AttributionError, match="returned 502 for pods"):
        client(server).list(PODS, SELECTOR)


def test_the_token_does_not_follow_a_redirect(api: ApiDouble, tmp_path: Path) -> None:
    elsewhere = f"Location: {api.url}{PODS}\r\n"
    with raw_server(tmp_path, whole(b"", "307 Temporary Redirect", elsewhere)) as server:
        with pytest.raises(AttributionError, match="returned 307"):
            client(server).list(PODS, SELECTOR)
        assert b"Authorization: Bearer secret\r\n" in server.asked[0]
    assert not api.asked


@pytest.mark.parametrize("body", [b"", b"OK", b"[1, 2]", b"{", b"[" * 100_000, b"\xff"])
def test_a_list_that_is_no_json_object(tmp_path: Path, body: bytes) -> None:
    with raw_server(tmp_path, whole(body)) as server, pytest.raises(AttributionError, match=r"is not (?:a )?JSON"):
        client(server).list(PODS, SELECTOR)


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n" + b'{"items": [',
        CHUNKED + chunk(b'{"items": ['),
        CHUNKED + b"zz\r\n{}",
    ],
)
def test_a_list_that_is_cut_off_is_none(tmp_path: Path, answer: bytes) -> None:
    with raw_server(tmp_path, answer) as server, pytest.raises(AttributionError):
        client(server).list(PODS, SELECTOR)


def test_a_list_that_drips_has_a_deadline(tmp_path: Path) -> None:
    """Each piece comes in time, and it would never end."""
    ended = threading.Event()

    def drip(connection: socket.socket) -> None:
        connection.sendall(CHUNKED)
        while not ended.wait(0.02):
            connection.sendall(chunk(b" "))

    with raw_server(tmp_path, drip) as server:
        with pytest.raises(AttributionError, match="took too long"):
            client(server, connect=0.5).list(PODS, SELECTOR)
        ended.set()


def test_a_server_that_says_nothing_has_a_deadline(tmp_path: Path) -> None:
    ended = threading.Event()

    def wait(_: socket.socket) -> None:
        ended.wait(HANG)

    with raw_server(tmp_path, wait) as server:
        with pytest.raises(AttributionError, match="no answer in time") as raised:
            client(server, connect=0.5).list(PODS, SELECTOR)
        assert "network policy" in raised.value.remedy
        ended.set()


def test_a_server_without_tls_gets_no_token(tmp_path: Path) -> None:
    with api_server(tmp_path) as api, socket.create_server(("127.0.0.1", 0)) as plain:
        got: list[bytes] = []

        def answer() -> None:
            connection, _ = plain.accept()
            got.append(connection.recv(65536))
            connection.sendall(whole(b"{}", "400 Bad Request"))
            connection.close()

        threading.Thread(target=answer, daemon=True).start()
        with pytest.raises(AttributionError, match="cannot be reached"):
            ApiServer("127.0.0.1", plain.getsockname()[1], api.credentials, connect=5.0).list(PODS, SELECTOR)
        assert got
        assert b"Bearer" not in got[0]


@pytest.mark.parametrize(
    "rest",
    [
        b"",
        chunk(b'{"type": "MODIFIED", "object": {"meta'),
        chunk(b'{"type": "MODIFIED", "object": {"meta') + b"0\r\n\r\n",
        b"40\r\n" + b'{"type": "MODIFIED"',
    ],
)
def test_a_watch_that_is_cut_in_the_middle_of_an_event_brings_no_half_of_it(tmp_path: Path, rest: bytes) -> None:
    first = json.dumps({"type": "ADDED", "object": api_pod("a")}).encode() + b"\n"
    seen: list[str] = []
    said = "interrupted"  # or nothing at all: some breaks cannot be told from an end
    with raw_server(tmp_path, CHUNKED + chunk(first) + rest) as server:
        try:
            seen.extend(event["type"] for event in client(server).watch(PODS, SELECTOR, "1"))
        except AttributionError as error:
            said = str(error)
    assert seen == [OPENED, "ADDED"]
    assert "interrupted" in said


@pytest.mark.parametrize("line", [b"\n", b"no json\n", b"[]\n"])
def test_an_event_that_is_no_json_object(tmp_path: Path, line: bytes) -> None:
    with raw_server(tmp_path, CHUNKED + chunk(line)) as server:
        watch = client(server).watch(PODS, SELECTOR, "1")
        assert next(watch)["type"] == OPENED
        with pytest.raises(AttributionError, match=r"is not (?:a )?JSON"):
            next(watch)


@pytest.mark.parametrize(
    ("object_", "told"),
    [(status(500, "etcd is ill"), "etcd is ill"), ({"code": "500"}, "returned 0"), (None, "an error without a status")],
)
def test_an_error_event_is_told(api: ApiDouble, object_: Any, told: str) -> None:
    watch = client(api).watch(PODS, SELECTOR, str(api.version))
    assert next(watch)["type"] == OPENED
    api.say({"type": "ERROR", "object": object_})
    with pytest.raises(AttributionError, match=told):
        next(watch)


def interrupted(asking: ApiServer, server: ApiDouble | RawServer, ask: Ask) -> float:
    """Seconds from the interruption until what ``ask`` does has ended."""
    ended = threading.Event()

    def run() -> None:
        try:
            ask()
        except AttributionError:
            pass
        finally:
            ended.set()

    before = len(server.asked)
    threading.Thread(target=run, daemon=True).start()
    wait_for(lambda: len(server.asked) > before, "the question")
    time.sleep(0.05)
    assert not ended.is_set()
    began = time.monotonic()
    asking.interrupt()
    assert ended.wait(HANG / 2)
    return time.monotonic() - began


def test_an_interruption_ends_a_watch_that_is_silent(api: ApiDouble) -> None:
    asking = client(api, HANG, HANG)
    assert interrupted(asking, api, lambda: list(asking.watch(PODS, SELECTOR, str(api.version)))) < HANG / 4


def test_an_interruption_ends_a_list_that_hangs_and_nothing_is_asked_any_more(api: ApiDouble) -> None:
    api.hang.set()
    asking = client(api, HANG, HANG)
    assert interrupted(asking, api, lambda: asking.list(PODS, SELECTOR)) < HANG / 4
    asked = len(api.asked)
    asks: list[Ask] = [lambda: asking.list(PODS, SELECTOR), lambda: next(asking.watch(PODS, SELECTOR, "1"))]
    for ask in asks:
        with pytest.raises(AttributionError, match="stopped"):
            ask()
    assert len(api.asked) == asked
