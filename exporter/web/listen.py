"""From `--web.listen-address` to a listening socket."""

from __future__ import annotations

import errno
import os
import re
import socket

# Clients wait here between connect() and accept(). Long, as one that finds it full tries again only after a second,
# while one that is accepted is served or refused at once.
_BACKLOG = 1024
_ADDRESS = re.compile(r"(?:\[(?P<bracketed>[^\[\]]+)\]|(?P<host>[^:\[\]/]*)):(?P<port>[0-9]{1,5})\Z")
_NO_SUCH_FAMILY = frozenset({errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL, errno.EPROTONOSUPPORT})


class ListenError(Exception):
    """A listen address that cannot be used; the text says which, why and what to do."""


def parse_address(address: str) -> tuple[str, int]:
    """(host, port) of `:9836`, `host:9836`, `0.0.0.0:9836` or `[::1]:9836`; host is empty for "everywhere".

    Raises ListenError for anything else.
    """
    match = _ADDRESS.match(address)
    if match is None or int(match["port"]) > 65535:
        raise ListenError(
            f"--web.listen-address {address!r} is not an address: expected :PORT, HOST:PORT or [IPV6]:PORT "
            "with a port of 0..65535, such as :9836 or [::1]:9836"
        )
    return match["bracketed"] or match["host"] or "", int(match["port"])


def listen(address: str) -> socket.socket:
    """A socket that listens on the address: `:PORT` is IPv6 and IPv4 together, or IPv4 where IPv6 does not exist.

    A host name listens on one of its addresses, an IPv4 one first (as Go's net.Listen does). Raises ListenError.
    """
    host, port = parse_address(address)
    if host:
        return _bind(address, *_resolve(address, host, port))
    try:
        return _bind(address, socket.AF_INET6, ("::", port))
    except ListenError as error:
        cause = error.__cause__
        if isinstance(cause, OSError) and cause.errno in _NO_SUCH_FAMILY:
            return _bind(address, socket.AF_INET, ("0.0.0.0", port))
        raise


def _resolve(address: str, host: str, port: int) -> tuple[socket.AddressFamily, tuple[object, ...]]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        raise ListenError(
            f"--web.listen-address {address!r}: cannot resolve {host!r} ({error}); use an address of this machine "
            "(see `ip address`) or :PORT for all of them"
        ) from error
    family, _, _, _, target = min(found, key=lambda entry: entry[0] != socket.AF_INET)
    return family, target


def _bind(address: str, family: socket.AddressFamily, target: tuple[object, ...]) -> socket.socket:
    server: socket.socket | None = None
    try:
        server = socket.socket(family, socket.SOCK_STREAM)
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        server.bind(target)
        server.listen(_BACKLOG)
        server.setblocking(False)
    except OSError as error:
        if server is not None:
            server.close()
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise ListenError(f"cannot listen on {address}: {reason}{_advice(error, target)}") from error
    return server


def _advice(error: OSError, target: tuple[object, ...]) -> str:
    if error.errno == errno.EADDRINUSE:
        return (
            f"; `ss -ltnp 'sport = :{target[1]}'` shows which process uses it; choose another with --web.listen-address"
        )
    if error.errno == errno.EACCES:
        return "; ports below 1024 need CAP_NET_BIND_SERVICE; choose a higher one with --web.listen-address"
    if error.errno == errno.EADDRNOTAVAIL:
        return "; this machine does not have that address; `ip address` lists its addresses"
    if error.errno == errno.EAFNOSUPPORT:
        return "; this machine has no IPv6; use an IPv4 address or :PORT"
    return ""
