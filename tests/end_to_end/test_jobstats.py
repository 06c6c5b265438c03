"""What jobstats asks Prometheus, on one that scrapes only this exporter."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.end_to_end.processes import Prometheus, daemon, prometheus, wait_for

pytestmark = pytest.mark.system

GPU = "GPU-51313131-0000-0000-0000-{:012d}"
INSTANCE = "MIG-51313131-0002-0000-0000-000000000002"
JOB, MIG_JOB = "41", "42"

# PrincetonUniversity/jobstats, jobstats.py: GPU_EXPORTER_JOBID = True (from its version of September 2025), then False.
BY_LABEL = {
    "total memory": "max_over_time(nvidia_gpu_memory_total_bytes{{cluster='c',jobid='{job}'}}[10s:])",
    "used memory": "max_over_time(nvidia_gpu_memory_used_bytes{{cluster='c',jobid='{job}'}}[10s:])",
    "utilization": "avg_over_time((nvidia_gpu_duty_cycle{{cluster='c',jobid='{job}'}} or "
    "(nvidia_gpu_graphics_util_percent{{cluster='c',jobid='{job}'}} * 100))[10s:])",
}
BY_SERIES = {
    "total memory": "max_over_time((nvidia_gpu_memory_total_bytes{{cluster='c'}} and nvidia_gpu_jobId == {job})[10s:])",
    "used memory": "max_over_time((nvidia_gpu_memory_used_bytes{{cluster='c'}} and nvidia_gpu_jobId == {job})[10s:])",
    "utilization": "avg_over_time(((nvidia_gpu_duty_cycle{{cluster='c'}} or "
    "(nvidia_gpu_graphics_util_percent{{cluster='c'}} * 100)) and nvidia_gpu_jobId == {job})[10s:])",
}
# its dashboard (grafana/Single_Job_Stats.json), its documentation (docs/setup/summaries.md)
DASHBOARD = {
    name: f'label_replace(nvidia_gpu_{name}{{{{jobid="{{job}}"}}}}, "shostname", "$1", "instance", "(.*):.*")'
    for name in ("duty_cycle", "memory_used_bytes", "temperature_celsius", "power_usage_milliwatts")
}
DOCUMENTED = (
    'avg_over_time(nvidia_gpu_power_usage_milliwatts{{cluster="c", jobid="{job}"}}[10s:])',
    'avg_over_time((nvidia_gpu_power_usage_milliwatts{{cluster="c"}} and nvidia_gpu_jobId == {job})[10s:])',
)
# PrincetonUniversity/gpudash
GPUDASH = ("nvidia_gpu_duty_cycle", "nvidia_gpu_jobUid", "nvidia_gpu_jobId")


def by_minor(server: Prometheus, query: str, job: str = JOB) -> dict[str, float]:
    """Minor number -> value, as jobstats takes them; what it would mistake for another fails."""
    found = server.query(query.format(job=job))
    values = {labels["minor_number"]: value for labels, value in found}
    assert len(values) == len(found)
    return values


def test_the_queries_of_jobstats_return_data(tmp_path: Path) -> None:
    jobs = tmp_path / "gpustat"
    jobs.mkdir()
    for name, job in ((GPU.format(0), JOB), (GPU.format(1), JOB), (INSTANCE, MIG_JOB)):
        (jobs / name).write_text(f"{job} 1001\n")
    arguments = (
        "--source=simulated",
        "--source.gpus=3",
        "--source.workload=training-healthy,idle-allocated,mig-mixed",
        "--collector.slurm",
        f"--slurm.jobs-folder={jobs}",
        f"--slurm.gpustat-folder={jobs}",
        "--compat.jobstats",
    )
    cluster = {"metric_relabel_configs": [{"target_label": "cluster", "replacement": "c"}]}
    with daemon(tmp_path, *arguments) as running, prometheus(tmp_path, running.url, scrape=cluster) as server:
        running.ready()
        wait_for(lambda: len(server.query(f'nvidia_gpu_duty_cycle{{jobid="{JOB}"}}')) == 2, "the job in Prometheus")
        time.sleep(5)
        for queries in (BY_LABEL, BY_SERIES):
            total, used, busy = (by_minor(server, query) for query in queries.values())
            assert total.keys() == used.keys() == busy.keys() == {"0", "1"}
            assert all(0 < used[minor] < total[minor] == 85520809984 for minor in total)
            assert busy["0"] > 80  # a percentage
            assert busy["1"] < 1
            total, used, busy = (by_minor(server, query, MIG_JOB) for query in queries.values())
            assert total.keys() == used.keys() == busy.keys() == {"2"}
            assert used["2"] < total["2"] == 85520809984 / 2  # the instance's, not the board's
            assert busy["2"] > 80  # from the measurement: the claim does not exist on MIG
        for query in (*DASHBOARD.values(), *DOCUMENTED):
            assert by_minor(server, query).keys() == {"0", "1"}, query
        shown = {name for name, query in DASHBOARD.items() if server.query(query.format(job=MIG_JOB))}
        assert shown == {"memory_used_bytes", "temperature_celsius"}  # no power and no claim of an instance
        assert all(server.query(query) for query in GPUDASH)
        assert {value for _, value in server.query("nvidia_gpu_jobUid")} == {1001}
        assert server.one("nvidia_gpu_num_devices") == 3
        for file in jobs.iterdir():  # the epilog
            file.unlink()
        wait_for(lambda: not server.query("nvidia_gpu_jobId"), "the end of the jobs")
        assert server.query("nvidia_gpu_duty_cycle")


def test_nothing_of_it_by_default_and_a_warning_without_jobs(tmp_path: Path) -> None:
    simulated = ("--source=simulated", "--source.gpus=1")
    with daemon(tmp_path, *simulated) as running:
        assert not any(series.startswith("nvidia_gpu_") for series in running.ready().metrics())
    environment = {"HONEST_GPU_COMPAT_JOBSTATS": "true"}
    with daemon(tmp_path, *simulated, environment=environment) as running:
        assert running.ready().value("nvidia_gpu_num_devices") == 1
        assert "--compat.jobstats needs --collector.slurm" in running.log
