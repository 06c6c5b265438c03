"""URLs: what is refused at construction, and that credentials stay where they belong."""

from __future__ import annotations

import base64

import pytest

from exporter.sources.scrape.source import ExporterSource
from exporter.sources.scrape.target import parse_target, redirected


@pytest.mark.parametrize(
    ("url", "shown", "path"),
    [
        ("http://localhost:9400/metrics", "http://localhost:9400/metrics", "/metrics"),
        ("http://localhost:9400", "http://localhost:9400/metrics", "/metrics"),
        ("http://localhost:9400/", "http://localhost:9400/", "/"),
        ("https://Node.example/metrics", "https://node.example/metrics", "/metrics"),
        ("http://node:80/m", "http://node/m", "/m"),
        ("http://[::1]:9400/metrics", "http://[::1]:9400/metrics", "/metrics"),
        ("http://u:p@h/metrics?token=secret#top", "http://h/metrics", "/metrics?token=secret"),
    ],
)
def test_urls(url: str, shown: str, path: str) -> None:
    target = parse_target(url)
    assert (str(target), target.path) == (shown, path)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "localhost:9400/metrics",
        "/metrics",
        "ftp://h/metrics",
        "file:///etc/passwd",
        "http://",
        "http:///metrics",
        "http://h:port/metrics",
        "http://h:70000/metrics",
        "http://h:0/metrics",
        "http://[::1/metrics",
        "http://h/a b",
        "http://h/\r\nX: y",
        "http://bücher.example/",
    ],
)
def test_what_is_no_url_is_refused_at_construction(url: str) -> None:
    with pytest.raises(ValueError, match="URL"):
        ExporterSource(url)


def test_credentials_are_sent_but_never_shown() -> None:
    target = parse_target("http://me%40here:p%3Ass@h/metrics")
    kind, encoded = target.credentials.split()
    assert (kind, base64.b64decode(encoded)) == ("Basic", b"me@here:p:ss")
    assert "ss" not in str(target) + repr(target).replace("class", "")
    assert parse_target("http://h/").credentials == ""


def test_credentials_do_not_follow_to_another_origin() -> None:
    target = parse_target("http://u:p@h:9400/a?q=1")
    assert redirected(target, "/b?r=2").credentials == target.credentials
    assert redirected(target, "b").path == "/b"
    assert redirected(target, "http://h:9401/a").credentials == ""
    assert redirected(target, "http://other:9400/a").credentials == ""
    assert redirected(target, "https://h:9400/a").credentials == ""


@pytest.mark.parametrize("location", ["ftp://h/a", "http://h/a b", "http://h:x/"])
def test_redirects_to_what_is_no_page_are_refused(location: str) -> None:
    with pytest.raises(ValueError, match="URL"):
        redirected(parse_target("http://h/a"), location)


def test_a_redirect_does_not_leave_tls() -> None:
    with pytest.raises(ValueError, match="https to http"):
        redirected(parse_target("https://h/a"), "http://h/a")
