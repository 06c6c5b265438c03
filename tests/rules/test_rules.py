"""Rules and alerts, by Prometheus's own promtool: they load, fire when they must, and are silent when they must be."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from exporter.metrics.catalogue import GROUPS, groups
from exporter.metrics.own import OwnState

RULES = Path(__file__).parents[2] / "rules"
FILES = sorted(RULES.glob("*.yml"))
GPU = 'job="gpu",instance="n1",gpu="0",uuid="GPU-1"'
OTHER = 'job="gpu",instance="n1",gpu="1",uuid="GPU-2"'


def promtool(*arguments: str) -> subprocess.CompletedProcess[str]:
    binary = shutil.which("promtool")
    if binary is None:
        pytest.skip("promtool is not installed (Debian package prometheus)")
    return subprocess.run([binary, *arguments], capture_output=True, text=True, check=False)


def counter(per_second: float) -> str:
    """120 minutes of a counter that grows that much a second."""
    return f"0+{per_second * 60:g}x120"


def device(labels: str, *, busy: float, sm: float, **others: float) -> dict[str, str]:
    """The series of one GPU at constant activity; others by name, as constants."""
    series = {
        f"honest_gpu_busy_seconds_total{{{labels}}}": counter(busy),
        f'honest_gpu_observed_seconds_total{{{labels},of="claim"}}': counter(1),
        f"honest_gpu_sm_active_seconds_total{{{labels}}}": counter(sm),
        f'honest_gpu_observed_seconds_total{{{labels},of="sm"}}': counter(1),
        f'honest_gpu_profiling_state{{{labels},state="ok"}}': "1x120",
    }
    return series | {f"honest_gpu_{name}{{{labels}}}": f"{value:g}x120" for name, value in others.items()}


def fired(folder: Path, series: Mapping[str, str], minutes: int = 110) -> set[str]:
    """Names of the alerts that fire after that time: all are said to be silent, promtool names those that are not."""
    names = re.findall(r"alert: (\w+)", (RULES / "alerts.yml").read_text())
    test: dict[str, Any] = {
        "rule_files": [str(path) for path in FILES],
        "evaluation_interval": "1m",
        "tests": [
            {
                "interval": "1m",
                "input_series": [{"series": key, "values": values} for key, values in series.items()],
                "alert_rule_test": [
                    {"eval_time": f"{minutes}m", "alertname": name, "exp_alerts": []} for name in names
                ],
            }
        ],
    }
    path = folder / "test.yml"
    path.write_text(json.dumps(test))
    done = promtool("test", "rules", str(path))
    firing = set(re.findall(r"alertname:\s*(\w+)", done.stdout + done.stderr))
    assert bool(firing) == (done.returncode != 0), done.stdout + done.stderr
    return firing


def test_rules_load() -> None:
    done = promtool("check", "rules", *map(str, FILES))
    assert done.returncode == 0, done.stdout + done.stderr


def test_rules_name_only_families_that_exist() -> None:
    known = {f.series_name for group in groups(OwnState(0.0)) for f in group.families}
    used = set(re.findall(r"honest_gpu_[a-z0-9_]+", "".join(path.read_text() for path in FILES)))
    recorded = set(re.findall(r"record: (\S+)", "".join(path.read_text() for path in FILES)))
    pieces = {piece for name in recorded for piece in name.split(":")}
    assert {name for name in used if name not in known and name not in pieces} == set()
    assert GROUPS


HEALTHY = device(GPU, busy=0.97, sm=0.9, allocated=1, processes=1)
CASES: dict[str, tuple[Mapping[str, str], Sequence[str]]] = {
    "healthy": (HEALTHY, ()),
    "tiny kernels": (device(GPU, busy=0.9, sm=0.01, allocated=1, processes=1), ["HonestGpuDivergence"]),
    "tiny kernels, data not trusted": (
        device(GPU, busy=0.9, sm=0.01, allocated=1, processes=1)
        | {
            f'honest_gpu_profiling_state{{{GPU},state="ok"}}': "0x120",
            f'honest_gpu_profiling_state{{{GPU},state="stuck_at_zero"}}': "1x120",
        },
        ["HonestGpuProfilingStuck"],
    ),
    "tiny kernels of nobody": (device(GPU, busy=0.9, sm=0.01, allocated=0, processes=1), ()),
    "tiny kernels where nobody allocates": (device(GPU, busy=0.9, sm=0.01, processes=1), ["HonestGpuDivergence"]),
    "held and idle": (device(GPU, busy=0, sm=0, allocated=1, processes=1), ["HonestGpuIdleAllocated"]),
    "held without a process": (device(GPU, busy=0, sm=0, allocated=1, processes=0), ["HonestGpuAllocatedNoProcess"]),
    "a hang": (
        device(GPU, busy=1, sm=0.03, allocated=1, processes=1)
        | {f'honest_gpu_state_seconds_total{{{GPU},state="stalled"}}': counter(1)},
        ["HonestGpuDivergence", "HonestGpuSuspectedHang"],
    ),
    "starved": (
        device(GPU, busy=0.2, sm=0.15, allocated=1, processes=1)
        | {f'honest_gpu_state_seconds_total{{{GPU},state="input_starved"}}': counter(1)},
        ["HonestGpuInputStarved"],
    ),
    "a straggler": (
        device(GPU, busy=0.97, sm=0.9)
        | device(OTHER, busy=0.97, sm=0.31)
        | {
            f'honest_gpu_allocation_info{{{GPU},job_id="7",sharing="exclusive"}}': "1x120",
            f'honest_gpu_allocation_info{{{OTHER},job_id="7",sharing="exclusive"}}': "1x120",
        },
        [],  # the median of two lies between them: 0.31 is above half of 0.605
    ),
    "a gpu is gone": (
        HEALTHY
        | {'honest_gpu_present_gpus{instance="n1"}': "7x120", 'honest_gpu_expected_gpus{instance="n1"}': "8x120"},
        ["HonestGpuMissing"],
    ),
    "an xid": (HEALTHY | {f'honest_gpu_xid_errors_total{{{GPU},xid="79"}}': "_x104 1x15"}, ["HonestGpuXid"]),
    "a source fails": (HEALTHY | {'honest_gpu_up{instance="n1",source="dcgm"}': "0x120"}, ["HonestGpuExporterDown"]),
    "throttled": (
        HEALTHY | {f'honest_gpu_clock_event_seconds_total{{{GPU},reason="hw_thermal"}}': counter(0.5)},
        ["HonestGpuThrottled"],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_fires(tmp_path: Path, case: str) -> None:
    series, expected = CASES[case]
    assert fired(tmp_path, series) == set(expected)


def test_an_alert_waits_and_does_not_fire_for_a_moment(tmp_path: Path) -> None:
    brief = HEALTHY | {f"honest_gpu_sm_active_seconds_total{{{GPU}}}": f"0+54x60 {54 * 60}+0x8 {54 * 60}+54x50"}
    assert fired(tmp_path, brief, minutes=72) == set()


def test_every_alert_has_its_runbook_and_says_where_and_who() -> None:
    text = (RULES / "alerts.yml").read_text()
    for name in re.findall(r"alert: (\w+)", text):
        assert f"runbook_url: docs/runbooks/{name}.md" in text
        assert (RULES.parent / "docs" / "runbooks" / f"{name}.md").exists()
    assert len(re.findall("summary:", text)) == len(re.findall("severity:", text)) == len(re.findall("alert:", text))
