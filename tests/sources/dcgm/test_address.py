"""Addresses of a hostengine."""

import pytest

from exporter.sources.dcgm.address import parse_address


@pytest.mark.parametrize(
    ("text", "target", "unix_socket"),
    [
        ("127.0.0.1:5555", "127.0.0.1:5555", False),
        ("node-7.cluster:1234", "node-7.cluster:1234", False),
        ("localhost", "localhost:5555", False),
        ("[::1]:5556", "[::1]:5556", False),
        ("[::1]", "[::1]:5555", False),
        ("unix:/run/nvidia-dcgm.sock", "/run/nvidia-dcgm.sock", True),
        ("unix:///run/nvidia-dcgm.sock", "/run/nvidia-dcgm.sock", True),
        ("embedded", "", False),
    ],
)
def test_addresses(text: str, target: str, unix_socket: bool) -> None:
    address = parse_address(text)
    assert (address.target, address.unix_socket, address.embedded) == (target, unix_socket, text == "embedded")
    assert str(address) == text


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "not HOST:PORT"),
        (":5555", "not HOST:PORT"),
        ("http://node:5555", "not HOST:PORT"),
        ("::1", "not HOST:PORT"),
        ("a b:5555", "not HOST:PORT"),
        ("node:", "port"),
        ("node:0", "port"),
        ("node:65536", "port"),
        ("node:http", "port"),
        ("unix:", "whole path"),
        ("unix:dcgm.sock", "whole path"),
    ],
)
def test_what_is_no_address(text: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        parse_address(text)


@pytest.mark.parametrize(
    ("text", "local"),
    [
        ("embedded", True),
        ("unix:/run/x.sock", True),
        ("localhost:5555", True),
        ("127.0.0.1", True),
        ("[::1]:5555", True),
        ("10.0.0.7:5555", False),
        ("node-127.example:5555", False),
    ],
)
def test_which_addresses_are_this_machine(text: str, local: bool) -> None:
    assert parse_address(text).local is local
