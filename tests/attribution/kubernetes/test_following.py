"""A copy of a collection over real HTTPS: it follows, and comes back from all that API servers do."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from exporter.attribution.kubernetes import following
from exporter.attribution.kubernetes.api_server import ApiServer
from exporter.attribution.kubernetes.credentials import Credentials
from exporter.attribution.kubernetes.following import Following
from tests.attribution.kubernetes.api_double import PODS, ApiDouble, api_server
from tests.attribution.kubernetes.api_objects import api_pod
from tests.end_to_end.processes import wait_for

SELECTOR = "spec.nodeName=node-1"
Follow = Callable[..., "Following[str]"]


@pytest.fixture
def api(tmp_path: Path) -> Iterator[ApiDouble]:
    with api_server(tmp_path) as double:
        yield double


@pytest.fixture
def follow(api: ApiDouble) -> Iterator[Follow]:
    """Makes one that runs and keeps the phase of each pod."""
    made: list[Following[str]] = []

    def start(paths: tuple[str, ...] = (PODS,), silence: float = 5.0, **other: Any) -> Following[str]:
        server = ApiServer(
            "127.0.0.1", api.port, other.get("credentials", api.credentials), connect=1.0, silence=silence
        )
        each = Following(
            "kubernetes_api",
            server,
            paths,
            SELECTOR,
            lambda pod: str(pod["status"]["phase"]),
            other.get("monotonic", time.monotonic),
            time.time,
            wait=(0.05, 0.2),
        )
        each.start()
        made.append(each)
        return each

    yield start
    for each in made:
        each.stop(5.0)


def phases(copy: Following[str]) -> dict[str, str]:
    return {name: phase for (_, name), phase in copy.objects.items()}


def test_it_lists_and_then_follows(api: ApiDouble, follow: Follow) -> None:
    api.put(api_pod("a"))
    copy = follow()
    wait_for(lambda: phases(copy) == {"a": "Running"}, "the list")
    api.put(api_pod("b", phase="Pending"))
    wait_for(lambda: phases(copy) == {"a": "Running", "b": "Pending"}, "a new one")
    api.put(api_pod("a", phase="Succeeded"))
    wait_for(lambda: phases(copy) == {"a": "Succeeded", "b": "Pending"}, "a change")
    api.delete("a")
    wait_for(lambda: phases(copy) == {"b": "Pending"}, "an end")
    assert copy.health.up
    assert copy.health.last_success == pytest.approx(time.time(), abs=60)
    assert (api.lists(), api.watches()) == (1, 1)
    for _, query in api.asked:
        assert query["fieldSelector"] == SELECTOR  # nothing of other nodes is asked for
    (listed, watched) = (query for _, query in api.asked)
    assert listed["resourceVersion"] == "0"  # from the API server's memory, not from etcd
    assert watched["allowWatchBookmarks"] == "true"
    assert int(watched["timeoutSeconds"]) > 0


def test_a_watch_goes_on_from_the_bookmark_when_the_server_ends_it(api: ApiDouble, follow: Follow) -> None:
    api.put(api_pod("a"))
    copy = follow()
    wait_for(lambda: copy.health.up and api.watches() == 1, "it runs")
    api.bookmark()
    last = str(api.version)
    wait_for(lambda: copy._version == last, "the bookmark")
    api.cut()
    wait_for(lambda: api.watches() == 2, "a second watch")
    assert api.asked[-1][1]["resourceVersion"] == last
    assert api.lists() == 1
    api.put(api_pod("b"))
    wait_for(lambda: "b" in phases(copy), "it follows")


def test_a_version_that_is_too_old_is_listed_anew(
    api: ApiDouble, follow: Follow, caplog: pytest.LogCaptureFixture
) -> None:
    api.put(api_pod("a"))
    copy = follow()
    wait_for(lambda: phases(copy) == {"a": "Running"} and api.watches() == 1, "it runs")
    with api.changed:
        del api.collections[PODS].objects["ml", "a"]  # its end is never told
    api.forget()
    wait_for(lambda: phases(copy) == {}, "the new list")
    assert api.lists() == 2
    assert not [record for record in caplog.records if record.levelname == "WARNING"]  # it is how watches are


def test_a_watch_that_falls_silent_is_asked_for_anew(api: ApiDouble, follow: Follow) -> None:
    copy = follow(silence=0.3)
    wait_for(lambda: api.watches() == 1, "a watch")
    api.mute.set()
    api.put(api_pod("a"))
    wait_for(lambda: api.watches() >= 2, "another watch")
    assert copy.health.up  # the server answers, it has only nothing to say
    api.mute.clear()
    wait_for(lambda: phases(copy) == {"a": "Running"}, "what was not said")
    assert api.lists() == 1


def test_a_server_that_restarts(api: ApiDouble, follow: Follow, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    api.put(api_pod("a"))
    copy = follow()
    wait_for(lambda: copy.health.up, "it runs")
    api.stop()
    wait_for(lambda: not copy.health.up, "the loss")
    assert phases(copy) == {"a": "Running"}  # believed for a while
    assert "127.0.0.1" in copy.health.reason or "interrupted" in copy.health.reason
    api.start()
    api.put(api_pod("b"))
    wait_for(lambda: set(phases(copy)) == {"a", "b"} and copy.health.up, "the return")
    wait_for(lambda: caplog.text.count("attribution kubernetes_api is read") == 2, "said")


def test_a_server_that_hangs(api: ApiDouble, follow: Follow) -> None:
    api.hang.set()
    copy = follow()
    wait_for(lambda: "no answer in time" in copy.health.reason, "the time-out")
    assert not copy.health.up
    api.hang.clear()
    wait_for(lambda: copy.health.up, "the return")


def test_a_server_that_hangs_later(api: ApiDouble, follow: Follow) -> None:
    api.put(api_pod("a"))
    copy = follow()
    wait_for(lambda: copy.health.up, "the list")
    api.hang.set()
    api.cut()
    wait_for(lambda: not copy.health.up, "the loss")
    assert phases(copy) == {"a": "Running"}
    api.hang.clear()
    wait_for(lambda: copy.health.up, "the return")


def test_the_copy_is_not_believed_for_ever(api: ApiDouble, follow: Follow) -> None:
    now = [0.0]
    api.put(api_pod("a"))
    copy = follow(monotonic=lambda: now[0])
    wait_for(lambda: phases(copy) == {"a": "Running"}, "it runs")
    api.stop()
    wait_for(lambda: not copy.health.up, "the loss")
    now[0] = following.STALE_AFTER - 1
    assert phases(copy) == {"a": "Running"}
    now[0] = following.STALE_AFTER + 1
    assert phases(copy) == {}


def test_a_token_that_is_renewed(api: ApiDouble, follow: Follow) -> None:
    copy = follow()
    wait_for(lambda: copy.health.up, "it runs")
    api.rotate("second")
    api.forget()  # ends the watch; the next question has the new token
    api.put(api_pod("a"))
    wait_for(lambda: phases(copy) == {"a": "Running"}, "it goes on")


def test_a_token_that_is_not_known(api: ApiDouble, follow: Follow) -> None:
    api.token = "another"
    copy = follow()
    wait_for(lambda: "(401)" in copy.health.reason, "the refusal")
    assert str(api.credentials.token) in copy.health.reason
    api.rotate("good")
    wait_for(lambda: copy.health.up, "the return")


def test_what_is_not_permitted_names_the_rule(api: ApiDouble, follow: Follow, caplog: pytest.LogCaptureFixture) -> None:
    api.refuse, api.says = 403, 'pods is forbidden: User "system:serviceaccount:monitoring:gpu" cannot list resource'
    copy = follow()
    wait_for(lambda: api.lists() >= 3, "several tries")
    assert "system:serviceaccount:monitoring:gpu" in copy.health.reason
    assert 'rule {apiGroups: [""], resources: [pods], verbs: [list, watch]}' in copy.health.reason
    assert len([record for record in caplog.records if "cannot be read" in record.message]) == 1  # said once
    api.refuse = None
    wait_for(lambda: copy.health.up, "the return")


def test_versions_of_an_api_are_tried_in_order(api: ApiDouble, follow: Follow) -> None:
    copy = follow(paths=("/apis/x/v1/pods", PODS))
    wait_for(lambda: copy.health.up, "the older one")
    copy = follow(paths=("/apis/x/v1/pods", "/apis/x/v1beta1/pods"))
    wait_for(lambda: "has none of /apis/x/v1/pods, /apis/x/v1beta1/pods" in copy.health.reason, "none")


def test_another_authority_is_not_trusted(api: ApiDouble, follow: Follow, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    stranger = ApiDouble(tmp_path / "other")
    copy = follow(credentials=Credentials(api.credentials.token, stranger.credentials.ca))
    wait_for(lambda: "not signed by the cluster's CA" in copy.health.reason, "the refusal")
    assert not api.asked  # no token was sent


@pytest.mark.parametrize("missing", ["token", "ca"])
def test_missing_files_are_named(api: ApiDouble, follow: Follow, tmp_path: Path, missing: str) -> None:
    gone = tmp_path / "gone"
    token, ca = api.credentials.token, api.credentials.ca
    copy = follow(credentials=Credentials(gone, ca) if missing == "token" else Credentials(token, gone))
    wait_for(lambda: str(gone) in copy.health.reason, "the refusal")
    assert "apiServer.enabled" in copy.health.reason


@pytest.mark.parametrize(
    "event",
    [
        {},
        {"type": "ADDED"},
        {"type": "ADDED", "object": {"metadata": {}}},
        {"type": "ODD", "object": 1},
        {"object": []},
    ],
)
def test_odd_events_do_no_harm(api: ApiDouble, follow: Follow, event: dict[str, Any]) -> None:
    api.put(api_pod("a"))
    copy = follow()
    wait_for(lambda: api.watches() == 1, "a watch")
    api.say(event)
    api.put(api_pod("b"))
    wait_for(lambda: set(phases(copy)) == {"a", "b"}, "it goes on")


def test_an_error_in_a_watch_is_said(api: ApiDouble, follow: Follow) -> None:
    copy = follow()
    wait_for(lambda: api.watches() == 1, "a watch")
    api.say({"type": "ERROR", "object": {"kind": "Status", "code": 500, "message": "etcd is on holiday"}})
    wait_for(lambda: "etcd is on holiday" in copy.health.reason or api.lists() > 1, "it is seen")
    api.put(api_pod("a"))
    wait_for(lambda: "a" in phases(copy), "it goes on")


def test_answers_are_bounded(api: ApiDouble, follow: Follow, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("exporter.attribution.kubernetes.api_server.MOST_BYTES", 2000)
    for number in range(10):
        api.put(api_pod(f"p{number}"))
    copy = follow()
    wait_for(lambda: "longer than 2000 bytes" in copy.health.reason, "the refusal")


def test_an_event_is_bounded(api: ApiDouble, follow: Follow, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("exporter.attribution.kubernetes.api_server.MOST_LINE", 5000)
    copy = follow()
    wait_for(lambda: api.watches() == 1, "a watch")
    api.put(api_pod("a", annotations={"big": "x" * 10000}))
    wait_for(lambda: "longer than 5000 bytes" in copy.health.reason or api.lists() > 1, "the refusal")


def test_the_copy_is_bounded(api: ApiDouble, follow: Follow, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "MOST_OBJECTS", 3)
    for number in range(5):
        api.put(api_pod(f"p{number}"))
    copy = follow()
    wait_for(lambda: len(copy.objects) == 3, "the list")
    assert copy.health.unresolved == {"left_out": 2}
    api.put(api_pod("late"))
    wait_for(lambda: copy.health.unresolved == {"left_out": 3}, "the event")
    assert len(copy.objects) == 3


def test_it_ends_while_it_waits(api: ApiDouble, follow: Follow) -> None:
    copy = follow(silence=600.0)
    wait_for(lambda: api.watches() == 1, "a watch")
    time.sleep(0.1)
    copy.stop(10.0)
    assert not [thread for thread in threading.enumerate() if thread.name == "kubernetes_api"]
