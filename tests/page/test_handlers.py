"""What is served under which path, with which headers."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from bench.nodes import gpus, snapshots
from exporter.endpoints import Published, endpoints
from exporter.page.handlers import STATIC
from exporter.page.history import History
from exporter.web.routes import Request, Response, Routes
from exporter.web.server import WebServer
from tests.page.nodes import published
from tests.web.clients import ask, connect
from tests.web.samples import LOGIN, USERS, load

PAGE = Path(__file__).parents[2] / "exporter" / "page"
FILES = (*STATIC, "icon.svg")
PATHS = ("/", "/api/v1/snapshot", *(f"/static/{name}" for name in FILES))


def filled(count: int = 3) -> Published:
    made = published()
    for snapshot in snapshots(gpus(2), count):
        made.publish(snapshot)
    return made


def answer(content: Published, path: str, query: str | None = None, **headers: str) -> Response:
    fields = {} if query is None else {"since": [query]}
    request = Request("GET", path, fields, {k.replace("_", "-"): v for k, v in headers.items()}, "::1")
    return Routes(endpoints(content, "/metrics"))(request)


def document(content: Published, query: str | None = None) -> dict[str, Any]:
    response = answer(content, "/api/v1/snapshot", query)
    assert response.status == 200
    assert response.content_type == "application/json; charset=utf-8"
    parsed: dict[str, Any] = json.loads(response.body)
    return parsed


def policy(headers: Mapping[str, str]) -> dict[str, str]:
    directives = (each.strip().partition(" ") for each in headers["Content-Security-Policy"].split(";"))
    return {name: value for name, _, value in directives}


@pytest.mark.parametrize("path", PATHS)
def test_nothing_from_elsewhere_and_nothing_inline(path: str) -> None:
    headers = answer(filled(), path).headers
    allowed = policy(headers)
    assert allowed["default-src"] == "'none'"
    assert allowed["script-src"] == allowed["style-src"] == allowed["connect-src"] == "'self'"
    assert allowed["frame-ancestors"] == "'none'"
    assert headers["X-Content-Type-Options"] == "nosniff"


def test_the_page_keeps_to_its_own_policy() -> None:
    page = answer(filled(), "/").body.decode()
    assert not re.search(r"\son\w+=|\sstyle=|<style|javascript:|<script(?![^>]*\ssrc=)", page)
    for name in STATIC:
        text = (PAGE / name).read_text().replace("http://www.w3.org/2000/svg", "")
        assert "//" not in re.sub(r"^\s*//.*$|\s// .*$", "", text, flags=re.MULTILINE), f"{name} names another host"
        assert not re.search(r"innerHTML|insertAdjacentHTML|\beval\(|setAttribute\(.style", text), name


def test_every_file_that_is_named_is_served_and_every_file_is_named() -> None:
    page = answer(filled(), "/").body.decode()
    named = set(re.findall(r'(?:src|href)="(static/[^"]+)"', page))
    for name in STATIC:
        if name.endswith(".js"):
            named |= {f"static/{other}" for other in re.findall(r'from "\./([^"]+)"', (PAGE / name).read_text())}
    assert named == {f"static/{name}" for name in FILES}
    links = re.findall(r'href="([^"#]+)"', page)
    for link in links:
        assert answer(filled(), f"/{link}").status == 200, link
        assert not link.startswith("/"), "the page must work under a proxy's prefix"


def test_the_page_links_the_metrics_where_they_are_and_escapes() -> None:
    table = endpoints(filled(), "/a/b")
    body = table["/"](Request("GET", "/", {}, {}, "::1")).body.decode()
    assert 'href="a/b"' in body
    assert "{" not in re.sub(r"<svg.*?</svg>", "", body, flags=re.DOTALL)


def test_metrics_at_the_root_take_the_pages_place() -> None:
    table = endpoints(filled(), "/")
    assert table["/"](Request("GET", "/", {}, {}, "::1")).content_type.startswith("text/plain")
    assert table["/api/v1/snapshot"](Request("GET", "/", {}, {}, "::1")).status == 200


@pytest.mark.parametrize("path", [path for path in PATHS if "api" not in path])
def test_unchanged_files_are_not_sent_again(path: str) -> None:
    first = answer(filled(), path)
    tag = first.headers["ETag"]
    assert first.headers["Cache-Control"] == "no-cache"
    for asked in (tag, f'"other", {tag}', f"W/{tag}", "*"):
        again = answer(filled(), path, if_none_match=asked)
        assert (again.status, again.body) == (304, b"")
        assert again.headers["ETag"] == tag
    assert answer(filled(), path, if_none_match='"other"').status == 200


def test_a_304_over_the_wire_leaves_the_connection_usable() -> None:
    server = WebServer(["127.0.0.1:0"], Routes(endpoints(filled(), "/metrics")))
    server.start()
    try:
        with connect(server.addresses[0]) as sock:
            tag = ask(sock, "/static/page.js").headers["etag"]
            assert ask(sock, "/static/page.js", headers={"If-None-Match": tag}).status == 304
            assert ask(sock, "/").status == 200
    finally:
        server.stop()


def test_before_the_first_window_the_document_says_so() -> None:
    response = answer(published(), "/api/v1/snapshot")
    assert response.status == 503
    assert response.headers["Retry-After"] == "1"
    assert json.loads(response.body) == {"version": 1, "error": "The first sampling window has not closed yet."}


def test_history_only_when_asked_for_and_only_what_is_later() -> None:
    content = filled(5)
    assert "history" not in document(content)
    every = document(content, "0")["history"]["timestamps"]
    assert len(every) == 5
    assert document(content, repr(every[1]))["history"]["timestamps"] == every[2:]
    last = document(content, repr(every[-1]))["history"]
    assert last == {"timestamps": [], "gpus": {}}


def test_a_clock_that_was_set_back_gives_all_of_it_again() -> None:
    assert len(document(filled(5), "99999999999")["history"]["timestamps"]) == 5


@pytest.mark.parametrize("since", ["", "x", "nan", "inf", "1e999", "<script>"])
def test_a_since_that_is_no_number_is_refused(since: str) -> None:
    response = answer(filled(), "/api/v1/snapshot", since)
    assert response.status == 400
    assert "Unix seconds" in json.loads(response.body)["error"]
    assert response.content_type.startswith("application/json")


def test_the_document_is_compressed_for_those_who_take_it() -> None:
    content = filled()
    response = answer(content, "/api/v1/snapshot", accept_encoding="gzip")
    assert response.headers["Content-Encoding"] == "gzip"
    assert response.headers["Vary"] == "Accept-Encoding"
    assert response.headers["Cache-Control"] == "no-store"
    assert json.loads(gzip.decompress(response.body))["number"] == document(content)["number"]


def test_nothing_for_those_who_have_no_password(tmp_path: Path) -> None:
    config = tmp_path / "web.yaml"
    config.write_text(USERS)
    server = WebServer(["127.0.0.1:0"], Routes(endpoints(filled(), "/metrics")), security=load(config))
    server.start()
    try:
        with connect(server.addresses[0]) as sock:
            for path in PATHS:
                refused = ask(sock, path)
                assert (refused.status, refused.body) == (401, b"Unauthorized\n"), path
                assert ask(sock, path, headers=LOGIN).status == 200, path
    finally:
        server.stop()


def test_publishing_feeds_the_history() -> None:
    content = filled(4)
    assert isinstance(content.history, History)
    assert len(content.history.since(0.0).timestamps) == 4
