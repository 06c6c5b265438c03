"""Listen addresses: which are taken, what they bind, and what is said of the others."""

from __future__ import annotations

import contextlib
import socket

import pytest

from exporter.web.listen import ListenError, parse_address

from .clients import get
from .conftest import Serve


def has_ipv6() -> bool:
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET6) as probe:
        probe.bind(("::1", 0))
        return True
    return False


needs_ipv6 = pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6 loopback")


def test_several_addresses(serve: Serve) -> None:
    server = serve(listen=["127.0.0.1:0", "127.0.0.1:0", "localhost:0"])
    assert len({port for _, port in server.addresses}) == 3
    assert [get(address).status for address in server.addresses] == [200] * 3


@needs_ipv6
def test_ipv6(serve: Serve) -> None:
    server = serve(listen=["[::1]:0"])
    assert get(server.addresses[0]).body == b"hello ::1"


@needs_ipv6
@pytest.mark.parametrize("address", [":0", "[::]:0"])
def test_everywhere_is_both_families(serve: Serve, address: str) -> None:
    port = serve(listen=[address]).addresses[0][1]
    assert get(("::1", port)).body == b"hello ::1"
    assert get(("127.0.0.1", port)).body == b"hello 127.0.0.1"  # not ::ffff:127.0.0.1


def test_everywhere_without_ipv6_is_ipv4(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    genuine = socket.socket

    def without_ipv6(family: int = -1, *rest: int) -> socket.socket:
        if family == socket.AF_INET6:
            raise OSError(97, "Address family not supported by protocol")
        return genuine(family, *rest)

    with monkeypatch.context() as patch:
        patch.setattr("exporter.web.listen.socket.socket", without_ipv6)
        server = serve(listen=[":0"])
    assert server.addresses[0][0] == "0.0.0.0"


def test_a_port_that_is_taken(serve: Serve) -> None:
    host, port = serve().addresses[0]
    with pytest.raises(ListenError, match=rf"{host}:{port}.*in use.*ss -ltnp.*--web\.listen-address"):
        serve(listen=["127.0.0.1:0", f"{host}:{port}"])


def test_an_address_of_another_machine(serve: Serve) -> None:
    with pytest.raises(ListenError, match=r"192\.0\.2\.1:0.*ip address"):
        serve(listen=["192.0.2.1:0"])


def test_a_name_that_does_not_resolve(serve: Serve) -> None:
    with pytest.raises(ListenError, match=r"cannot resolve 'nowhere\.invalid'"):
        serve(listen=["nowhere.invalid:0"])


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        (":9836", ("", 9836)),
        ("0.0.0.0:1", ("0.0.0.0", 1)),
        ("[::1]:80", ("::1", 80)),
        ("gpu-7.example:80", ("gpu-7.example", 80)),
        ("[fe80::1%eth0]:80", ("fe80::1%eth0", 80)),
    ],
)
def test_addresses(address: str, expected: tuple[str, int]) -> None:
    assert parse_address(address) == expected


@pytest.mark.parametrize(
    "address", ["", "9836", "host", "host:", "host:http", ":65536", "::1:80", "[::1]", "http://x:80", "vsock://:80"]
)
def test_what_is_not_an_address(address: str) -> None:
    with pytest.raises(ListenError, match=r"expected :PORT"):
        parse_address(address)
