"""GPU-seconds by job and part, from a prolog's file to PromQL."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.end_to_end.processes import daemon, prometheus, wait_for

pytestmark = pytest.mark.system

GPU = "GPU-51313131-0000-0000-0000-{:012d}"


def test_gpu_seconds_of_a_job_by_part(tmp_path: Path) -> None:
    jobs = tmp_path / "jobs"
    jobs.mkdir()
    (jobs / "7").write_text(f"job_id=7\nuser=ann\naccount=ml\ngpu={GPU.format(0)}\ngpu={GPU.format(1)}\n")
    arguments = (
        "--source=simulated",
        "--source.gpus=3",
        "--source.workload=training-healthy,idle-allocated,idle",
        "--collector.slurm",
        f"--slurm.jobs-folder={jobs}",
    )
    with daemon(tmp_path, *arguments) as running, prometheus(tmp_path, running.url) as server:
        running.ready()
        held = "honest_gpu_allocation_info"
        wait_for(lambda: running.value(held, gpu="0", job_id="7", user="ann", sharing="exclusive") == 1, "the holder")
        assert running.value("honest_gpu_allocated", gpu="1") == 1
        assert running.value("honest_gpu_allocated", gpu="2") == 0
        assert running.value("honest_gpu_attribution_up", source="slurm") == 1
        time.sleep(10)
        job = 'sum(rate(honest_gpu_workload_time_seconds_total{job_id="7"}[8s]))'
        wait_for(lambda: server.query(job), "two scrapes")
        second = 'scalar(rate(honest_gpu_observed_seconds_total{gpu="0",of="parts"}[8s]))'  # of the same scrapes
        assert server.one(f"{job} / {second}") == pytest.approx(2.0, abs=1e-6)  # two GPUs
        idle = 'sum(rate(honest_gpu_workload_time_seconds_total{job_id="7",part="idle"}[8s]))'
        assert 1.0 <= server.one(f"{idle} / {second}") < 1.3  # one of them does nothing
        series = "honest_gpu_time_seconds_total"
        whole = server.one(f"sum({series})")
        parts = "sum(honest_gpu_workload_time_seconds_total) + sum(honest_gpu_unattributed_time_seconds_total)"
        assert server.one(parts) == pytest.approx(whole, rel=1e-9)
        (jobs / "7").unlink()  # the epilog
        wait_for(lambda: running.value("honest_gpu_allocated", gpu="0") == 0, "the end of the job")
        assert running.value("honest_gpu_workload_time_seconds_total", job_id="7", part="idle")  # for the last scrape
