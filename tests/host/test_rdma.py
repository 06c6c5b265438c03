"""RDMA ports: two adapters of an H100 node, and what can be missing."""

from __future__ import annotations

import json
from pathlib import Path

from exporter.host import rdma
from tests.data import HERE


def test_two_adapters_of_a_real_node(tmp_path: Path) -> None:
    for name, text in json.loads((HERE / "hosts" / "infiniband.json").read_text()).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    first, second = rdma.read(tmp_path)
    assert (first.device, first.port, first.state, first.link_layer) == ("mlx5_0", "1", "active", "InfiniBand")
    assert first.bytes_per_second == 50e9
    assert first.receive_bytes == 230539874932483 * 4
    assert first.transmit_bytes == 230442669431839 * 4
    assert first.errors["port_rcv_errors"] == 14
    assert first.errors["out_of_sequence"] == 0
    assert first.saturated == {"excessive_buffer_overrun_errors"}  # 15: four bits, it counts no further
    assert second.device == "mlx5_1"
    assert second.receive_bytes == 205128687774249 * 4
    assert second.saturated == {"excessive_buffer_overrun_errors", "link_downed"}  # 255


def port(root: Path, **files: str) -> Path:
    folder = root / "mlx5_0" / "ports" / "1"
    (folder / "counters").mkdir(parents=True)
    for name, text in files.items():
        target = folder / name if name in ("state", "rate", "link_layer") else folder / "counters" / name
        target.write_text(text)
    return root


def test_no_adapter_is_no_port(tmp_path: Path) -> None:
    assert rdma.read(tmp_path / "infiniband") == []
    (tmp_path / "mlx5_0").mkdir()
    assert rdma.read(tmp_path) == []


def test_what_a_port_does_not_tell_is_absent_not_zero(tmp_path: Path) -> None:
    (found,) = rdma.read(port(tmp_path))
    assert (found.receive_bytes, found.transmit_bytes, found.bytes_per_second, found.state) == (None, None, None, "")
    assert found.errors == {}


def test_odd_counters(tmp_path: Path) -> None:
    (found,) = rdma.read(
        port(
            tmp_path,
            port_rcv_data="4294967295\n",  # a 32-bit counter that has stopped
            port_xmit_data="N/A (no PMA)\n",
            symbol_error="0\n",
            rate="2.5 Gb/sec (1X SDR)\n",
            state="1: DOWN\n",
        )
    )
    assert (found.receive_bytes, found.transmit_bytes) == (None, None)
    assert found.errors == {"symbol_error": 0}
    assert (found.bytes_per_second, found.state) == (0.3125e9, "down")
