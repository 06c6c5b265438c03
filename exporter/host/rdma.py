"""Ports of InfiniBand and RoCE adapters: /sys/class/infiniband (Documentation/ABI/stable/sysfs-class-infiniband)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from exporter.host.reading import RdmaPort

WORD = 4  # port_rcv_data and port_xmit_data count 4-byte words (IBTA PortCounters: "octets divided by 4")
STUCK_DATA = 2**32 - 1  # adapters without 64-bit counters stop there

# error counter -> bits (IBTA PortCounters; they stop at their highest value). 64: the driver's own, in hw_counters.
ERRORS: Mapping[str, int] = {
    "symbol_error": 16,
    "link_error_recovery": 8,
    "link_downed": 8,
    "port_rcv_errors": 16,
    "port_rcv_remote_physical_errors": 16,
    "port_rcv_constraint_errors": 8,
    "port_xmit_discards": 16,
    "port_xmit_constraint_errors": 8,
    "local_link_integrity_errors": 4,
    "excessive_buffer_overrun_errors": 4,
    "out_of_sequence": 64,
    "packet_seq_err": 64,
    "local_ack_timeout_err": 64,
    "rnr_nak_retry_err": 64,
}


def read(root: Path = Path("/sys/class/infiniband")) -> list[RdmaPort]:
    """All ports of all adapters, by name; none where there is no adapter."""
    return [_port(port) for port in sorted(root.glob("*/ports/*")) if port.is_dir()]


def _port(path: Path) -> RdmaPort:
    errors = {name: count for name in ERRORS if (count := _count(_counter(path, name))) is not None}
    return RdmaPort(
        device=path.parent.parent.name,
        port=path.name,
        state=_text(path / "state").partition(": ")[2].lower(),  # "4: ACTIVE"
        link_layer=_text(path / "link_layer"),
        bytes_per_second=_rate(_text(path / "rate")),
        receive_bytes=_data(path / "counters" / "port_rcv_data"),
        transmit_bytes=_data(path / "counters" / "port_xmit_data"),
        errors=errors,
        saturated=frozenset(name for name, count in errors.items() if count >= 2 ** ERRORS[name] - 1),
    )


def _counter(path: Path, name: str) -> Path:
    return path / ("hw_counters" if ERRORS[name] == 64 else "counters") / name


def _data(path: Path) -> int | None:
    words = _count(path)
    return None if words is None or words == STUCK_DATA else words * WORD


def _rate(text: str) -> float | None:
    match = re.match(r"([0-9]{1,9}(?:\.[0-9]{1,9})?) Gb/sec", text)  # "400 Gb/sec (4X NDR)"
    return float(match[1]) * 1e9 / 8 if match else None


def _count(path: Path) -> int | None:
    text = _text(path)
    # "N/A (no PMA)" where the adapter has no such counter
    return int(text) if re.fullmatch("[0-9]{1,20}", text) else None


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except (OSError, UnicodeDecodeError):  # a port without that file, an adapter that was just removed
        return ""
