"""How to reach the API server and who to be there: a service account's files, or those of a kubelet's own."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from exporter.attribution.holdings import AttributionError
from exporter.attribution.small_files import read_small

IN_CLUSTER = "in-cluster"
SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
TOKEN, CA = SERVICE_ACCOUNT / "token", SERVICE_ACCOUNT / "ca.crt"
_HOST, _PORT = "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"  # a kubelet sets them in every container


def address(api_server: str, environment: Mapping[str, str]) -> tuple[str, int]:
    """Host and port of a URL, or of ``in-cluster``. Raises ValueError."""
    if api_server == IN_CLUSTER:
        host, port = environment.get(_HOST, ""), environment.get(_PORT, "443")
        if not host:
            raise ValueError(f"{IN_CLUSTER} only works in a pod, where {_HOST} is set; otherwise use https://HOST:6443")
        return host, int(port)
    parts = urlsplit(api_server)
    if parts.scheme != "https" or not parts.hostname or parts.path.strip("/") or parts.query or parts.username:
        raise ValueError(f"{api_server!r}: expected {IN_CLUSTER} or a URL such as https://10.0.0.1:6443")
    return parts.hostname, parts.port or 443


@dataclass(frozen=True, slots=True)
class Credentials:
    """Files, read anew for each connection: a kubelet renews the token every hour or so, and the authority at times."""

    token: Path = TOKEN
    ca: Path = CA

    def bearer(self) -> str:
        """Raises AttributionError."""
        try:
            token = read_small(self.token).strip()
        except OSError as error:
            raise AttributionError(f"the token {self.token} cannot be read: {error}", self._remedy) from error
        if not token or not token.isascii() or not token.isprintable():
            raise AttributionError(f"{self.token} contains no token", self._remedy)
        return token

    def context(self) -> ssl.SSLContext:
        """Trusts the cluster's authority and nobody else. Raises AttributionError."""
        try:
            return ssl.create_default_context(cafile=str(self.ca))
        except OSError as error:  # ssl.SSLError is one
            raise AttributionError(f"the CA {self.ca} cannot be read: {error}", self._remedy) from error

    @property
    def _remedy(self) -> str:
        return "mount the service account's token and ca.crt (chart: collectors.kubernetes.apiServer.enabled)"
