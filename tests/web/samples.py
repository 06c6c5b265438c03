"""Web configurations that several tests start from."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import bcrypt

from exporter.web.limits import Limits
from exporter.web.web_config import Security

from .conftest import Authority

Write = Callable[[str], Path]

TLS = "tls_server_config:\n  cert_file: server.crt\n  key_file: server.key\n"
HASH = bcrypt.hashpw(b"s3cret", b"$2b$04$" + b"." * 22).decode()  # the same in every process: it is in names of tests
USERS = f"basic_auth_users:\n  alice: {HASH}\n"
LOGIN = {"Authorization": "Basic YWxpY2U6czNjcmV0"}
FAST = Limits(handshake_seconds=0.4, request_seconds=2.0, linger_seconds=0.2)


class Reloads:
    """What `on_reload` was told."""

    def __init__(self) -> None:
        self.outcomes: list[Exception | None] = []

    def __call__(self, error: Exception | None) -> None:
        self.outcomes.append(error)


def load(path: Path, on_reload: Callable[[Exception | None], None] | None = None) -> Security:
    """A view that looks at the files at every call."""
    return Security.load(path, on_reload or Reloads(), check_seconds=0.0)


def mutual(client_auth_type: str, authority: Authority, extra: str = "") -> str:
    return f"{TLS}  client_auth_type: {client_auth_type}\n  client_ca_file: {authority.cert}\n{extra}"
