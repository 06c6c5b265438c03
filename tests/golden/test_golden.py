"""What /metrics says of known inputs, in full: the review surface. --update-golden writes the files anew."""

from __future__ import annotations

import math
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from exporter.assembly import Assembly
from exporter.clock import VirtualClock
from exporter.core.pipeline import Pipeline
from exporter.core.sampler import Sampler
from exporter.core.snapshot import Snapshot
from exporter.core.workers import InlineWorker
from exporter.exposition import text
from exporter.hardware.peaks import load
from exporter.hardware.stage import HardwareStage
from exporter.metrics.catalogue import GROUPS, Selection, samples
from exporter.metrics.family import Profile
from exporter.model import Source
from exporter.sources.replay.opening import open_replay
from exporter.sources.scrape.client import Page
from exporter.sources.scrape.source import ExporterSource
from exporter.sources.simulated.source import simulated_source
from exporter.state.stage import StateStage
from exporter.state.thresholds import Thresholds
from tests.data import capture

HERE = Path(__file__).parent
SECONDS = 60


def t4() -> Source:
    body = capture("dcgm_exporter/t4_under_load.prom").read_text()
    return ExporterSource("http://node:9400/metrics", fetch=lambda: Page(body))


def saxpy() -> Source:
    return open_replay(capture("traces/saxpy_a100_nsys2022.sqlite"), loop=True)


def simulated() -> Source:
    return simulated_source(("training-healthy", "tiny-kernels", "hang", "mig-mixed"), 4, loop=True)


INPUTS: dict[str, tuple[Callable[[], Source], Profile]] = {
    "t4_under_load": (t4, Profile.FULL),
    "saxpy_a100": (saxpy, Profile.FULL),
    "simulated_node": (simulated, Profile.DEFAULT),
}


def last(source: Source) -> Snapshot:
    """The Snapshot after a minute of virtual time."""
    clock, seen = VirtualClock(), list[Snapshot]()
    assembly = Assembly(seen.append, HardwareStage(load()), StateStage(Thresholds()))
    sampler = Sampler([InlineWorker(source)], Pipeline(clock, 1.0), clock, assembly, interval=1.0)
    sampler.tick()
    for _ in range(SECONDS):
        clock.advance(1.0)
        sampler.tick()
    return seen[-1]


def metrics(source: Source, profile: Profile) -> str:
    """Its exposition, without what this very process adds of itself."""
    families = samples(last(source), GROUPS, Selection(profile))
    for family, listed in families.items():
        if family.name == "source_read_seconds":  # real time
            listed[:] = [sample._replace(value=0.0) for sample in listed]
    return text(families).decode()


@pytest.mark.parametrize("name", INPUTS)
def test_golden(name: str, request: pytest.FixtureRequest) -> None:
    make, profile = INPUTS[name]
    compare(metrics(make(), profile), HERE / f"{name}.prom", request)


def compare(made: str, file: Path, request: pytest.FixtureRequest) -> None:
    """The same lines in the same order, values but for rounding."""
    if request.config.getoption("--update-golden"):
        file.write_text(made)
    wanted, got = file.read_text().splitlines(), made.splitlines()
    assert [line if line.startswith("#") else line.rsplit(" ", 1)[0] for line in got] == [
        line if line.startswith("#") else line.rsplit(" ", 1)[0] for line in wanted
    ]
    for expected, line in zip(wanted, got, strict=True):
        if not line.startswith("#"):  # Python 3.12 sums floats more exactly than 3.10
            assert math.isclose(float(line.rsplit(" ", 1)[1]), float(expected.rsplit(" ", 1)[1]), rel_tol=1e-9), line


@pytest.mark.parametrize("name", INPUTS)
def test_promtool_has_nothing_to_say(name: str) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed (Debian package prometheus)")
    run = subprocess.run(
        [promtool, "check", "metrics"], input=(HERE / f"{name}.prom").read_bytes(), capture_output=True, check=False
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, b"", b"")
