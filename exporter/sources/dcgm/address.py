"""Where the hostengine is: host:port, unix:PATH, or embedded in this process."""

from __future__ import annotations

import re
from dataclasses import dataclass

DEFAULT_PORT = 5555  # nv-hostengine's own
_HOST = re.compile(r"[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]")


@dataclass(frozen=True, slots=True)
class Address:
    """``target`` is what DCGM gets: host:port or the path of a socket; empty for the embedded hostengine."""

    text: str
    target: str
    unix_socket: bool = False

    @property
    def embedded(self) -> bool:
        return not self.target

    @property
    def local(self) -> bool:
        """Whether it is on this machine, as far as the address shows."""
        host = self.target.rpartition(":")[0]
        return self.embedded or self.unix_socket or host in ("localhost", "[::1]") or host.startswith("127.")

    def __str__(self) -> str:
        return self.text


def parse_address(text: str) -> Address:
    """Parse an address from the configuration. ValueError says what is wrong with it."""
    if text == "embedded":
        return Address(text, "")
    if text.startswith("unix:"):
        path = text.removeprefix("unix:").removeprefix("//")
        if not path.startswith("/"):
            raise ValueError(f"{text!r}: a socket needs its whole path, like unix:/run/nvidia-dcgm.sock")
        return Address(text, path, unix_socket=True)
    host, separator, port = text.rpartition(":") if not text.endswith("]") else (text, "", "")
    if not separator:
        host, port = text, str(DEFAULT_PORT)
    if not _HOST.fullmatch(host):
        raise ValueError(f"{text!r} is not HOST:PORT, unix:PATH or embedded")
    if not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        raise ValueError(f"{text!r}: the port must be a number from 1 to 65535")
    return Address(text, f"{host}:{int(port)}")
