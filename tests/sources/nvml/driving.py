"""Drives the source in a process of its own, with NVIDIA's binding over the player's library."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.abi.nvml.playing import Playing, play
from tests.abi.nvml.scenario import Scenario

PRELUDE = """
import json, logging, os, struct, sys, threading, time
from exporter.model import SourceError
from exporter.sources.nvml.source import NvmlSource
logging.basicConfig(level="INFO", stream=sys.stderr)
clock_path, at = os.environ["HONEST_TEST_NVML_CLOCK"], 0.0

def set_clock(seconds):
    global at
    at = seconds
    with open(clock_path, "r+b") as file:
        file.write(struct.pack("d", seconds))

def make(**options):
    return NvmlSource(wall=lambda: 1_767_225_600.0 + at, **options)

def read(source, seconds):
    set_clock(seconds)
    try:
        batch = source.read(seconds)
    except SourceError as error:
        return {"error": str(error), "remedy": error.remedy}
    name = lambda e: e.uuid + ("" if e.gpu_instance is None else f"/{e.gpu_instance}")
    return {
        "devices": {name(d.entity): [d.index, d.model, d.mig_profile, d.mig_enabled, d.mig_uuid, d.minor]
                    for d in batch.devices},
        "values": {name(e) + " " + f + (":" + label if label else ""): v
                   for e, f, end, v, start, why, label in batch.readings if v is not None},
        "spans": {name(r.entity) + " " + r.field: [r.start, r.end] for r in batch.readings if r.start is not None},
        "absent": {name(r.entity) + " " + r.field: r.absence.value for r in batch.readings if r.absence},
        "xids": [[name(r.entity), r.label, r.value] for r in batch.readings if r.field == "xid" and not r.absence],
        "links": None if batch.fabric is None else
            {name(e): {link: state.value for link, state in links.items()} for e, links in batch.fabric.links.items()},
        "problems": [[p.what, p.why, p.remedy] for p in batch.problems],
        "processes": None if batch.processes is None else
            [[name(p.entity), p.pid, p.memory_bytes, p.sm] for p in batch.processes],
    }

def reads(source, *times):
    return [read(source, t) for t in times]
"""


@dataclass(frozen=True)
class Driven:
    """What the script left in ``result``, its log, and what the library counted."""

    result: Any
    log: str
    playing: Playing


def drive(scenario: Scenario, player: Path, folder: Path, script: str, env: Mapping[str, str] | None = None) -> Driven:
    """Run ``script``; the clock begins at 0."""
    playing = play(scenario, player, folder)
    whole = PRELUDE + textwrap.dedent(script) + "\nprint(json.dumps(result))\nsys.stdout.flush()\nos._exit(0)\n"
    done = subprocess.run(
        [sys.executable, "-c", whole],
        env=playing.environment() | {"PYTHONDONTWRITEBYTECODE": "1"} | dict(env or {}),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return Driven(json.loads(done.stdout), done.stderr, playing)
