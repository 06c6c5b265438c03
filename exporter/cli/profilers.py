"""Programs that may hold the profiling counters, and where the hostengines among them listen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import psutil

HOSTENGINE = "nv-hostengine"
PROFILERS = frozenset({HOSTENGINE, "dcgm-exporter", "nsys", "nsys-agent", "ncu", "nv-nsight-cu-cl", "dcgmproftester"})
_PORT = "5555"  # nv-hostengine's own
_SOCKET = "/tmp/nv-hostengine"  # its own, where --domain-socket has no path


def running() -> list[str]:
    """Each one that is visible from here, by name, with its process id and, of a hostengine, its addresses."""
    found = []
    for process in psutil.process_iter(["name", "pid", "cmdline"]):
        name = process.info["name"]
        if name in PROFILERS:
            where = ", ".join(_addresses(process)) if name == HOSTENGINE else ""
            found.append(f"{name} (pid {process.info['pid']}{f', at {where}' if where else ''})")
    return sorted(found)


def _addresses(process: psutil.Process) -> list[str]:
    """What it listens on; what its command line asks for where that is not ours to see."""
    try:
        sockets = process.net_connections("all")
    except psutil.Error:
        return list(asked(process.info["cmdline"] or ()))
    tcp = {_tcp(each.laddr.ip, each.laddr.port) for each in sockets if each.status == psutil.CONN_LISTEN}
    unix = {f"unix:{each.laddr}" for each in sockets if isinstance(each.laddr, str) and each.laddr.startswith("/")}
    return sorted(tcp | unix) or list(asked(process.info["cmdline"] or ()))


def _tcp(ip: str, port: int) -> str:
    return f"[{ip}]:{port}" if ":" in ip else f"{ip}:{port}"


def asked(arguments: Sequence[str]) -> Iterator[str]:
    """The options of nv-hostengine: --port, --bind-interface, --domain-socket (DCGM, HostEngineCommandLine.cpp)."""
    if (path := _option(arguments, "-d", "--domain-socket")) is not None:
        yield f"unix:{path or _SOCKET}"
        return
    host = _option(arguments, "-b", "--bind-interface") or "127.0.0.1"
    yield f"{'*' if host == 'ALL' else host}:{_option(arguments, '-p', '--port') or _PORT}"


def _option(arguments: Sequence[str], *names: str) -> str | None:
    """Its value, empty where it has none; None where it is not there."""
    for index, argument in enumerate(arguments):
        name, separator, value = argument.partition("=")
        if name in names:
            following = arguments[index + 1] if index + 1 < len(arguments) else ""
            return value if separator else "" if following.startswith("-") else following
    return None
