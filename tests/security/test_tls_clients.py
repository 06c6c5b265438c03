"""TLS and client certificates with real clients: curl, openssl, Prometheus."""

from __future__ import annotations

import contextlib
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import bcrypt
import pytest
from cryptography import x509

from exporter.web.limits import Limits
from tests.end_to_end.processes import Daemon, parse, pick, prometheus, wait_for
from tests.security.conftest import Curl, Serve
from tests.web.conftest import Authority, Identity

pytestmark = pytest.mark.system

MUTUAL = """\
tls_server_config:
  cert_file: server.crt
  key_file: server.key
  client_auth_type: RequireAndVerifyClientCert
  client_ca_file: {authority.cert}
"""


@pytest.fixture(scope="session")
def scraper(authority: Authority) -> Identity:
    return authority.issue("scraper", [x509.DNSName("scraper.example")])


def options(authority: Authority, identity: Identity | None) -> list[str]:
    """Of curl: whom it trusts, and who it is."""
    own = ["--cert", str(identity.cert), "--key", str(identity.key)] if identity is not None else []
    return ["--cacert", str(authority.cert), *own]


@pytest.fixture
def url(serve: Serve, curl: Curl, tmp_path: Path, authority: Authority, scraper: Identity) -> Iterator[str]:
    """Of a daemon that wants client certificates."""
    authority.issue("server").copy_to(tmp_path, "server")

    def ready(running: Daemon) -> bool:
        return curl(f"https://127.0.0.1:{running.port}/-/ready", *options(authority, scraper)) == (0, "200 1.1")

    with serve(MUTUAL.format(authority=authority), ready) as running:
        yield f"https://127.0.0.1:{running.port}"


def test_curl(url: str, curl: Curl, authority: Authority, stranger: Authority, scraper: Identity) -> None:
    metrics = f"{url}/metrics"
    good = options(authority, scraper)
    assert curl(metrics, *good) == (0, "200 1.1")
    assert pick(parse(curl.body), "honest_gpu_up", source="simulated") == 1
    assert curl(metrics, "--http2", *good) == (0, "200 1.1")  # nobody is told of HTTP/2
    assert curl(metrics, "--tls-max", "1.2", *good) == (0, "200 1.1")

    status, told = curl(metrics, *options(stranger, scraper))
    assert (status, "certificate" in told) == (60, True)  # curl does not trust the daemon

    for identity in (None, stranger.issue("scraper")):
        status, told = curl(metrics, *options(authority, identity))
        assert status in (35, 55, 56)  # in the handshake, or in TLS 1.3 at the first write or read after it
        assert curl.body == ""

    status, told = curl(metrics.replace("https", "http"))
    assert (status, told[:3]) == (0, "400")


def test_old_versions_are_refused_by_the_daemon(url: str) -> None:
    """A client that would speak them is told no; one that refuses them itself would prove nothing."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is not installed (Debian package openssl)")
    address = url.removeprefix("https://")
    for version in ("tls1", "tls1_1"):
        command = [openssl, "s_client", "-connect", address, f"-{version}", "-cipher", "DEFAULT@SECLEVEL=0"]
        run = subprocess.run(command, input="", capture_output=True, text=True, check=False, timeout=20)
        assert run.returncode != 0
        assert "alert protocol version" in run.stderr, run.stderr


def test_prometheus_while_certificates_rotate_and_handshakes_hang(
    url: str, tmp_path: Path, authority: Authority, scraper: Identity
) -> None:
    """No scrape fails: not at a change of certificate, not while an attacker's handshakes take their time."""
    tls = {"ca_file": str(authority.cert), "cert_file": str(scraper.cert), "key_file": str(scraper.key)}
    port = int(url.rpartition(":")[2])
    with prometheus(tmp_path, f"127.0.0.1:{port}", scrape={"scheme": "https", "tls_config": tls}) as watching:
        wait_for(lambda: watching.query("up == 1"), "the first scrape")
        context = authority.client_context(scraper)
        with contextlib.ExitStack() as stack:
            hanging = [stack.enter_context(hang(port, begun=number % 2 == 0)) for number in range(16)]
            for _ in range(2):
                before = serial(port, context)
                authority.issue("server").copy_to(tmp_path, "server")
                wait_for(lambda before=before: serial(port, context) != before, "the new certificate is served")
            started = time.monotonic()
            for sock in hanging:
                with contextlib.suppress(ConnectionError):
                    assert sock.recv(1) == b""  # cut off, and nothing in clear text
            assert time.monotonic() - started < 2 * Limits().handshake_seconds
        time.sleep(2.1)
        assert watching.one("min_over_time(up[5m])") == 1
        assert watching.one("count_over_time(up[5m])") >= 5
        (found,) = watching.query('honest_gpu_web_connections_total{event="handshake_timeout"}')
        assert found[1] == 8  # of one address; the other eight did not get a slot


def test_prometheus_with_a_certificate_and_a_password(
    serve: Serve, curl: Curl, tmp_path: Path, authority: Authority, scraper: Identity
) -> None:
    """Both are wanted at every path: neither does for the other."""
    authority.issue("server").copy_to(tmp_path, "server")
    good, login = options(authority, scraper), ["--user", "scrape:s3cret"]
    hashed = bcrypt.hashpw(b"s3cret", bcrypt.gensalt(10)).decode()
    web = MUTUAL.format(authority=authority) + f"basic_auth_users:\n  scrape: {hashed}\n"

    def ready(running: Daemon) -> bool:
        return curl(f"https://127.0.0.1:{running.port}/-/ready", *good, *login) == (0, "200 1.1")

    with serve(web, ready) as running:
        address = f"127.0.0.1:{running.port}"
        for path in ("/metrics", "/", "/api/v1/snapshot", "/static/page.js", "/-/healthy", "/-/ready", "/nowhere"):
            assert curl(f"https://{address}{path}", *good) == (0, "401 1.1"), path
            assert curl.body == "Unauthorized\n"
            assert curl(f"https://{address}{path}", *options(authority, None), *login)[0] in (35, 55, 56), path
        assert curl(f"https://{address}/metrics", *good, "--user", "scrape:wrong") == (0, "401 1.1")
        scrape = {
            "scheme": "https",
            "tls_config": {
                "ca_file": str(authority.cert),
                "cert_file": str(scraper.cert),
                "key_file": str(scraper.key),
            },
            "basic_auth": {"username": "scrape", "password": "s3cret"},
        }
        with prometheus(tmp_path, address, scrape=scrape) as watching:
            wait_for(lambda: watching.query("honest_gpu_up == 1"), "the first scrape")
            wait_for(lambda: watching.one("count_over_time(up[5m])") >= 3, "more of them")
            assert watching.one("min_over_time(up[5m])") == 1


def hang(port: int, *, begun: bool) -> socket.socket:
    """A client that says nothing, or begins a handshake and does not go on."""
    sock = socket.create_connection(("127.0.0.1", port), timeout=20, source_address=("127.0.0.2", 0))
    if begun:
        sock.sendall(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")
    return sock


def serial(port: int, context: ssl.SSLContext) -> object:
    """The serial number of the certificate that the daemon serves now."""
    sock = socket.create_connection(("127.0.0.1", port), timeout=20)
    with context.wrap_socket(sock, server_hostname="localhost") as secure:
        return (secure.getpeercert() or {}).get("serialNumber")
