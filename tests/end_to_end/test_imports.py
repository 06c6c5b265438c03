"""What a running daemon has imported: libraries that only a feature needs cost memory only where it is switched on."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path

import pytest

from tests.abi.dcgm.bindings import need_bindings
from tests.abi.dcgm.build import player_library
from tests.abi.dcgm.playing import play
from tests.attribution.kubernetes.api_double import api_server
from tests.attribution.kubernetes.api_objects import api_pod
from tests.end_to_end.processes import Daemon, daemon, fetch, wait_for
from tests.end_to_end.test_drivers import busy_node, nvml
from tests.sources.dcgm.nodes import gpu, node

UNWANTED = frozenset({"asyncio", "email", "grpc", "hashlib", "http.client", "http.server", "ssl", "urllib.request"})
LINE = re.compile(r"^import '(\S+)' # ", re.MULTILINE)


def imported(running: Daemon) -> set[str]:
    """By the whole process since its start, as Python itself reports it."""
    names = set(LINE.findall(running.log))
    assert {"exporter.web.server", "zlib"} <= names  # it does report
    return names


def in_use(running: Daemon) -> set[str]:
    """After everything that a node serves by default was asked for."""
    running.ready()
    wait_for(lambda: running.value("honest_gpu_sm_active_ratio", gpu="1") is not None, "a measurement")
    for path in ("/", "/static/page.js", "/api/v1/snapshot?since=0"):
        fetch(f"{running.url}{path}", {"Accept-Encoding": "gzip;q=0"})
    return imported(running)


def reporting(environment: dict[str, str]) -> dict[str, str]:
    return environment | {"PYTHONVERBOSE": "1"}


def test_a_simulated_node(tmp_path: Path) -> None:
    environment = reporting(dict(os.environ))
    with daemon(tmp_path, "--source=simulated", "--source.gpus=2", environment=environment) as running:
        assert UNWANTED.isdisjoint(in_use(running))


def test_the_driver(tmp_path: Path) -> None:
    with daemon(tmp_path, environment=reporting(nvml(busy_node(2), tmp_path))) as running:
        names = in_use(running)
        assert "pynvml" in names
        assert not UNWANTED & names


@pytest.mark.parametrize("flags", [(), ("--collector.processes",)], ids=["default", "processes"])
def test_a_hostengine(tmp_path: Path, flags: tuple[str, ...]) -> None:
    need_bindings()
    scenario = replace(node(gpu(0), gpu(1)), wall_offset=None)
    environment = reporting(play(scenario, player_library(), tmp_path / "dcgm", real_time=True).environment())
    with daemon(tmp_path, "--dcgm.address=localhost:5555", *flags, environment=environment) as running:
        names = in_use(running)
        assert any(name.endswith("dcgm_agent") for name in names)
        assert not UNWANTED & names


def test_the_api_server_where_it_is_asked_for(tmp_path: Path) -> None:
    with api_server(tmp_path) as api:
        api.put(api_pod("train", "main"))
        flags = (
            "--source=simulated",
            "--collector.processes",
            f"--kubernetes.api-server={api.url}",
            "--kubernetes.node-name=node-1",
            f"--kubernetes.token-file={api.credentials.token}",
            f"--kubernetes.ca-file={api.credentials.ca}",
        )
        with daemon(tmp_path, *flags, environment=reporting(dict(os.environ))) as running:
            running.ready()
            up = "honest_gpu_attribution_up"
            wait_for(lambda: running.value(up, source="kubernetes_api") == 1, "the API server")
            assert api.watches() >= 1
            assert {"ssl", "http.client"} <= imported(running)
