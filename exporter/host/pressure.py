"""Pressure stall information of the node: /proc/pressure (Linux 4.20, Documentation/accounting/psi.rst)."""

from __future__ import annotations

import re
from pathlib import Path

from exporter.host.reading import Pressure, Stall
from exporter.model import Problem

RESOURCES = ("cpu", "io", "memory")


def read(root: Path = Path("/proc/pressure")) -> tuple[dict[str, Pressure], list[Problem]]:
    """Pressure by resource; a resource that the kernel does not report is missing, and a problem has the reason."""
    found: dict[str, Pressure] = {}
    problems: list[Problem] = []
    for resource in RESOURCES:
        try:
            found[resource] = parse((root / resource).read_text(), resource)
        except (OSError, ValueError) as error:  # psi=0 at boot: the files exist, and reading them fails
            problems.append(_problem(root / resource, error))
    return found, problems


def parse(text: str, resource: str) -> Pressure:
    """One file: lines ``some|full avg10=.. avg60=.. avg300=.. total=..``, percent and microseconds. ValueError."""
    lines: dict[str, Stall] = {}
    for line in text.splitlines():
        kind, *pairs = line.split()
        values = dict(pair.split("=", 1) for pair in pairs)
        try:
            lines[kind] = Stall(
                seconds=_number(values["total"]) / 1e6,
                average={window: _number(values[f"avg{window}"]) / 100 for window in (10, 60, 300)},
            )
        except KeyError as error:
            raise ValueError(f"no {error.args[0]} in {line!r}") from error
    if not lines:
        raise ValueError("is empty")
    # psi.rst: "CPU full is undefined at the system level", the kernel writes zeros there
    return Pressure(lines.get("some"), None if resource == "cpu" else lines.get("full"))


def _number(text: str) -> float:
    """As the kernel prints it. ValueError."""
    if not re.fullmatch(r"[0-9]{1,20}(?:\.[0-9]{1,9})?", text):
        raise ValueError(f"{text[:40]!r} is not a number")
    return float(text)


def _problem(path: Path, error: Exception) -> Problem:
    why = getattr(error, "strerror", None) or str(error)
    missing = isinstance(error, FileNotFoundError) or not isinstance(error, PermissionError)
    remedy = "boot a kernel built with CONFIG_PSI with psi=1" if missing else f"allow reading {path}"
    return Problem(f"no pressure from {path}", why, remedy)
