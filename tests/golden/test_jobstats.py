"""What --compat.jobstats serves of a small node, in full: a GPU with a job, without, with two jobs, and MIG."""

from __future__ import annotations

from pathlib import Path

import pytest

from exporter.assembly import Assembly
from exporter.attribution.accounting import Accounting
from exporter.attribution.background import AttributionBackground
from exporter.attribution.job_mapping import read_job_files
from exporter.attribution.slurm import MappingFolder, SlurmAttributor
from exporter.attribution.stage import AttributionStage
from exporter.clock import VirtualClock
from exporter.core.pipeline import Pipeline
from exporter.core.sampler import Sampler
from exporter.core.snapshot import Snapshot
from exporter.core.workers import InlineWorker
from exporter.exposition import text
from exporter.hardware.peaks import load
from exporter.hardware.stage import HardwareStage
from exporter.metrics import jobstats
from exporter.metrics.catalogue import Selection, samples
from exporter.sources.simulated.source import simulated_source
from exporter.state.stage import StateStage
from exporter.state.thresholds import Thresholds
from tests.golden.test_golden import HERE, compare

GPU = "GPU-51313131-0000-0000-0000-{:012d}"
INSTANCE = "MIG-51313131-{:04d}-0000-0000-{:012d}"
WORKLOADS = ("training-healthy", "idle", "tiny-kernels", "mig-mixed")


def node(folder: Path) -> Snapshot:
    """A node of four GPUs after half a minute, with the jobs that the folder names."""
    clock, seen = VirtualClock(), list[Snapshot]()
    attributor = SlurmAttributor([MappingFolder(folder, read_job_files)])
    jobs = AttributionBackground(attributor, 10.0, clock.monotonic, clock.timestamp)
    stage = AttributionStage([jobs], Accounting())
    assembly = Assembly(seen.append, HardwareStage(load()), StateStage(Thresholds()), stage)
    source = simulated_source(WORKLOADS, len(WORKLOADS), loop=True)
    sampler = Sampler([InlineWorker(source)], Pipeline(clock, 1.0), clock, assembly, interval=1.0)
    sampler.tick()
    for _ in range(30):
        clock.advance(1.0)
        sampler.tick()
        jobs.read()
    return seen[-1]


def test_golden(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    for job, facts in {
        "41": f"user=ada\nuid=1001\ngpu={GPU.format(0)}",
        "42": f"user=ann\nuid=1002\ngpu={GPU.format(2)}",
        "43": f"user=bob\ngpu={GPU.format(2)}",  # written before the prolog gave the user's number
        "44": f"user=eve\nuid=1004\ngpu={INSTANCE.format(2, 3)}",
    }.items():
        (tmp_path / job).write_text(f"job_id={job}\n{facts}\n")
    families = samples(node(tmp_path), [jobstats.GROUP], Selection())
    compare(text(families).decode(), HERE / "jobstats.prom", request)
