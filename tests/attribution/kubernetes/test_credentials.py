"""Where the API server is, and who asks it."""

from __future__ import annotations

from pathlib import Path

import pytest

from exporter.attribution.holdings import AttributionError
from exporter.attribution.kubernetes.credentials import IN_CLUSTER, Credentials, address

INSIDE = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "8443"}


@pytest.mark.parametrize(
    ("text", "environment", "found"),
    [
        (IN_CLUSTER, INSIDE, ("10.96.0.1", 8443)),
        (IN_CLUSTER, {"KUBERNETES_SERVICE_HOST": "fd00::1"}, ("fd00::1", 443)),
        ("https://10.0.0.1:6443", {}, ("10.0.0.1", 6443)),
        ("https://api.example.org", INSIDE, ("api.example.org", 443)),
        ("https://[fd00::1]:6443/", {}, ("fd00::1", 6443)),
    ],
)
def test_addresses(text: str, environment: dict[str, str], found: tuple[str, int]) -> None:
    assert address(text, environment) == found


@pytest.mark.parametrize(
    ("text", "environment"),
    [
        (IN_CLUSTER, {}),
        (IN_CLUSTER, {**INSIDE, "KUBERNETES_SERVICE_PORT": "https"}),
        ("http://10.0.0.1:6443", {}),
        ("10.0.0.1:6443", {}),
        ("https://10.0.0.1:6443/api", {}),
        ("https://10.0.0.1:99999", {}),
        ("https://me:secret@10.0.0.1", {}),
        ("https://", {}),
        ("https://[::1", {}),
    ],
)
def test_what_is_no_address(text: str, environment: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r".+"):
        address(text, environment)


@pytest.mark.parametrize("content", [b"", b"\n", b"two\nlines", b"\xff", b"a\x00b", "schl\u00fcssel".encode()])
def test_a_file_that_has_no_token_is_none(tmp_path: Path, content: bytes) -> None:
    """It goes into a header: what would break one is not sent."""
    (tmp_path / "token").write_bytes(content)
    with pytest.raises(AttributionError, match="contains no token") as raised:
        Credentials(tmp_path / "token", tmp_path / "ca").bearer()
    assert "service account" in raised.value.remedy
    if content.strip():
        assert content.decode("utf-8", errors="replace").strip() not in str(raised.value)


def test_a_token_that_is_longer_than_any(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("x" * 10_000_000)
    with pytest.raises(AttributionError, match="cannot be read"):
        Credentials(tmp_path / "token", tmp_path / "ca").bearer()


def test_an_authority_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "ca").write_text("no certificate")
    with pytest.raises(AttributionError, match=r"the CA .* cannot be read"):
        Credentials(tmp_path / "token", tmp_path / "ca").context()
