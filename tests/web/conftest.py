"""Fixtures: servers that are stopped after the test, and certificates made for it."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from exporter.web.limits import Limits
from exporter.web.routes import Handler, Request, Response, Routes
from exporter.web.server import WebServer
from exporter.web.web_config import Security

Serve = Callable[..., WebServer]


@dataclass(frozen=True)
class Identity:
    """A certificate and its key, as files."""

    cert: Path
    key: Path

    def copy_to(self, folder: Path, stem: str) -> None:
        """Write both the way a rotation does: a new file that takes the place of the old one."""
        for source, suffix in ((self.cert, ".crt"), (self.key, ".key")):
            fresh = folder / f"{stem}{suffix}.new"
            fresh.write_bytes(source.read_bytes())
            fresh.replace(folder / f"{stem}{suffix}")


class Authority:
    """A certificate authority of the tests."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        certificate = _builder(self._name, self._name, self._key.public_key(), is_authority=True).add_extension(
            x509.KeyUsage(False, False, False, False, False, True, True, False, False), critical=True
        )
        self.cert = folder / f"{name}.ca.crt"
        self.cert.write_bytes(certificate.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))

    def issue(self, stem: str, sans: Sequence[x509.GeneralName] = (), password: bytes | None = None) -> Identity:
        """A certificate for servers and clients, good for localhost where no names are given."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = sans or (x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1")))
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, stem)])
        certificate = (
            _builder(subject, self._name, key.public_key(), is_authority=False)
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
            .add_extension(
                x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]),
                critical=False,
            )
            .sign(self._key, hashes.SHA256())
        )
        identity = Identity(self._folder / f"{stem}.crt", self._folder / f"{stem}.key")
        encryption = serialization.BestAvailableEncryption(password) if password else serialization.NoEncryption()
        identity.cert.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        identity.key.write_bytes(
            key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption)
        )
        return identity

    def client_context(self, identity: Identity | None = None) -> ssl.SSLContext:
        """A client that trusts this authority, with a certificate of its own if given."""
        context = ssl.create_default_context(cafile=str(self.cert))
        if identity is not None:
            context.load_cert_chain(identity.cert, identity.key)
        return context


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, *, is_authority: bool
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.timezone.utc)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"), "tests")


@pytest.fixture(scope="session")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """An authority that nobody trusts."""
    return Authority(tmp_path_factory.mktemp("stranger"), "stranger")


@pytest.fixture(scope="session")
def server_identity(authority: Authority) -> Identity:
    return authority.issue("server")


@pytest.fixture(scope="session")
def client_identity(authority: Authority) -> Identity:
    return authority.issue("client", [x509.DNSName("prometheus.example")])


def hello(request: Request) -> Response:
    return Response(200, "text/plain", f"hello {request.client}".encode())


def fail(request: Request) -> Response:
    raise RuntimeError("broken on purpose")


def big(request: Request) -> Response:
    return Response(200, "text/plain", b"x" * (32 * 1024 * 1024))


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Start a server: serve(application=..., listen=[...], security=..., limits=...)."""
    servers: list[WebServer] = []

    def start(
        application: Handler | None = None,
        *,
        listen: Sequence[str] = ("127.0.0.1:0",),
        security: Security | None = None,
        limits: Limits = Limits(),  # noqa: B008 - frozen
    ) -> WebServer:
        routes = Routes({"/": hello, "/fail": fail, "/big": big})
        server = WebServer(listen, application or routes, security=security, limits=limits)
        server.start()
        servers.append(server)
        return server

    yield start
    for server in servers:
        server.stop()


@pytest.fixture
def web_config(tmp_path: Path, server_identity: Identity) -> Callable[[str], Path]:
    """Write a web configuration file beside `server.crt` and `server.key`, and give its path."""
    server_identity.copy_to(tmp_path, "server")

    def write(text: str) -> Path:
        path = tmp_path / "web.yml"
        fresh = tmp_path / "web.yml.new"
        fresh.write_text(text)
        fresh.replace(path)
        return path

    return write
