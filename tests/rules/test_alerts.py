"""Every alert: it fires when it must, waits, does not flap, outlives a scrape gap, and is silent on doubtful data."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.rules.cases import CASES, EFFICIENCY, HEALTH, LAZY, LOCKED, OLD, PEERS, TINY
from tests.rules.nodes import GONE, WELL, WRONG, Counter, Gauge, Gpu, Node, played
from tests.rules.promtool import ALERTS, Fired, fired

pytestmark = pytest.mark.system

WINDOW = 17  # minutes: the longest rate window, and the evaluations on the way from series to alert
SOON = [name for name, case in EFFICIENCY.items() if case.wait <= 30]


def names(found: Iterable[Fired], cluster: str, minute: int) -> set[str]:
    return {alert.name for alert in found if alert.labels.get("cluster") == cluster and alert.minute == minute}


def nodes(cases: Iterable[str]) -> dict[str, Node]:
    return {name: CASES[name].node for name in cases}


def test_every_alert_has_a_case() -> None:
    covered = {case.alert for case in CASES.values()} | {"HonestGpuXid", "HonestGpuThresholdsMissing"}
    assert covered == set(ALERTS)


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> list[Fired]:
    """All cases at once: 10 minutes well, 80 wrong, 40 well again."""
    plan = WELL * 10 + WRONG * 80 + WELL * 40
    waits = {case.wait for case in CASES.values()}
    minutes = {9, 89, 129} | {10 + wait - 1 for wait in waits} | {10 + wait + WINDOW for wait in waits}
    return fired(tmp_path_factory.mktemp("course"), played(nodes(CASES), plan), sorted(minutes))


@pytest.mark.parametrize("name", CASES)
def test_course_of_an_alert(course: list[Fired], name: str) -> None:
    case = CASES[name]
    assert names(course, name, 9) == set()
    assert case.alert not in names(course, name, 10 + case.wait - 1)  # it waits
    assert case.alert in names(course, name, 10 + case.wait + WINDOW)
    assert names(course, name, 89) == {case.alert, *case.also}
    assert names(course, name, 129) == set()


@pytest.mark.parametrize("name", EFFICIENCY)
def test_an_efficiency_alert_says_whose_it_is(course: list[Fired], name: str) -> None:
    (alert,) = [a for a in course if a.minute == 89 and a.name == CASES[name].alert and a.labels["cluster"] == name]
    assert (alert.labels["kind"], alert.labels["input"]) == ("efficiency", CASES[name].input)
    if name == "full-pool":
        assert alert.labels["model"] == name
        return
    assert (alert.labels["namespace"], alert.labels["pod"]) == ("ml", "train-0")
    assert alert.labels["uuid"] in alert.description
    assert alert.description.startswith(f"GPU {alert.labels['gpu']} of {name}:9836, ")
    assert alert.description.endswith("Held by ml/train-0.")


def test_one_idle_gpu_is_named_though_seven_others_work(course: list[Fired]) -> None:
    found = [a for a in course if a.minute == 89 and a.labels.get("cluster") == "one-of-eight-idles"]
    assert {(alert.name, alert.labels["gpu"]) for alert in found} == {
        ("HonestGpuIdleAllocated", "0"),
        ("HonestGpuStraggler", "0"),
    }


def test_what_comes_and_goes_does_not_fire(tmp_path: Path) -> None:
    """Two minutes wrong, eight minutes well, again and again."""
    found = fired(tmp_path, played(nodes(CASES), (WRONG * 2 + WELL * 8) * 6), range(20, 60, 5))
    assert {(alert.name, alert.labels["cluster"]) for alert in found} == set()


def test_a_scrape_gap_neither_resolves_nor_restarts_an_efficiency_alert(tmp_path: Path) -> None:
    """Eight minutes away: longer than any rate window of these alerts needs, and than HonestGpuExporterAbsent waits."""
    minutes = range(49, 85, 2)
    found = fired(tmp_path, played(nodes(SOON), WRONG * 50 + GONE * 8 + WRONG * 28), minutes)
    for name in SOON:
        missing = [minute for minute in minutes if EFFICIENCY[name].alert not in names(found, name, minute)]
        assert missing == [], name
        assert "HonestGpuExporterAbsent" in names(found, name, 57)


def test_a_node_that_stays_away_hands_over_to_the_exporters_alert(tmp_path: Path) -> None:
    """There is no minute without an alert, and the exporter's fires before the other ends: no 'resolved' between."""
    minutes = range(49, 80)
    found = fired(tmp_path, played(nodes(SOON), WRONG * 50 + GONE * 30), minutes)
    for name in SOON:
        before = [minute for minute in minutes if EFFICIENCY[name].alert in names(found, name, minute)]
        absent = [minute for minute in minutes if "HonestGpuExporterAbsent" in names(found, name, minute)]
        assert before[0] == 49
        assert absent[0] < before[-1] < 75, name
        assert absent[-1] == 79


@pytest.mark.parametrize(
    ("doubt", "health", "silent"),
    [
        (LOCKED, "HonestGpuProfilingLost", {"measurement"}),
        (OLD, "HonestGpuStale", {"measurement", "claim"}),
    ],
    ids=["locked", "old"],
)
def test_doubtful_data_silences(tmp_path: Path, doubt: dict[str, Gauge], health: str, silent: set[str]) -> None:
    doubtful = {name: case.node.suspect(doubt) for name, case in EFFICIENCY.items()}
    found = fired(tmp_path, played(doubtful, WRONG * 90), [89])
    for name, case in EFFICIENCY.items():
        assert health in names(found, name, 89)
        assert (case.alert in names(found, name, 89)) == (case.input not in silent), name


def test_a_source_that_is_down_silences(tmp_path: Path) -> None:
    down = {'honest_gpu_up{source="nvml"}': Gauge(1, 0)}
    doubtful = {name: Node(case.node.gpus, down) for name, case in EFFICIENCY.items()}
    found = fired(tmp_path, played(doubtful, WRONG * 90), [89])
    assert {alert.name for alert in found} == {"HonestGpuExporterDown"}


def test_nobody_holds_it_nobody_is_told(tmp_path: Path) -> None:
    free = {"honest_gpu_allocated": Gauge(0, 0)}
    unheld = {name: CASES[name].node.suspect(free) for name in ("tiny-kernels", "no-tensor", "no-process")}
    assert fired(tmp_path, played(unheld, WRONG * 90), [89]) == []


def test_where_nobody_allocates_divergence_is_told_without_a_holder(tmp_path: Path) -> None:
    info = 'honest_gpu_allocation_info{namespace="ml",pod="train-0",container="main",sharing="exclusive"}'
    unknown = {"honest_gpu_allocated": Gauge(None, None), info: Gauge(None, None)}
    (alert,) = fired(tmp_path, played({"bare": Node((TINY,)).suspect(unknown)}, WRONG * 60), [59])
    assert alert.name == "HonestGpuDivergence"
    assert "Held by" not in alert.description
    assert "namespace" not in alert.labels


def test_mig_instances_are_judged_by_the_engine(tmp_path: Path) -> None:
    """A claim does not exist there, and the alert names the instance and its own holder only."""
    no_claim = {
        "honest_gpu_busy_seconds_total": Gauge(None, None),
        'honest_gpu_observed_seconds_total{of="claim"}': Gauge(None, None),
    }
    series = played({"mig": Node((TINY,)).suspect(no_claim)}, WRONG * 60)
    first = {key.replace('uuid="GPU-mig-0"', 'uuid="GPU-mig-0",gpu_instance="9"'): text for key, text in series.items()}
    other = {
        key.replace('gpu_instance="9"', 'gpu_instance="10"').replace("train-0", "neighbour"): text
        for key, text in first.items()
        if "allocation_info" in key
    }
    (alert,) = fired(tmp_path, first | other, [59])
    assert (alert.name, alert.labels["gpu_instance"]) == ("HonestGpuDivergence", "9")
    assert alert.description.startswith("GPU 0 instance 9 of mig:9836, GPU-mig-0: the driver claims 90%")
    assert alert.description.endswith("slow host. Held by ml/train-0.")


def test_two_holders_break_no_rule_and_are_both_named(tmp_path: Path) -> None:
    """A join that finds two would fail for the whole fleet."""
    series = played({"shared": Node((TINY,)), "alone": Node((TINY,))}, WRONG * 60)
    second = {
        key.replace("train-0", "train-1"): text
        for key, text in series.items()
        if "allocation_info" in key and "shared" in key
    }
    found = {alert.labels["cluster"]: alert for alert in fired(tmp_path, series | second, [59])}
    assert "Held by ml/train-0. Held by ml/train-1." in found["shared"].description
    assert "pod" not in found["shared"].labels
    assert found["alone"].labels["pod"] == "train-0"


@pytest.mark.parametrize(("xid", "severity"), [("79", "warning"), ("13", "info"), ("131", "warning")])
def test_an_xid_is_told_at_once_by_whose_fault_it_is(tmp_path: Path, xid: str, severity: str) -> None:
    gpu = Gpu(more={f'honest_gpu_xid_errors_total{{xid="{xid}"}}': Gauge(None, 1)})
    found = fired(tmp_path, played({"xid": Node((gpu,))}, WELL * 30 + WRONG * 60), [29, 31, 38, 60])
    assert [(alert.minute, alert.name, alert.labels["severity"]) for alert in found] == [
        (31, "HonestGpuXid", severity),
        (38, "HonestGpuXid", severity),
    ]
    more = Gpu(more={f'honest_gpu_xid_errors_total{{xid="{xid}"}}': Gauge(1, 2)})
    assert [a.minute for a in fired(tmp_path, played({"xid": Node((more,))}, WELL * 30 + WRONG * 60), [29, 31])] == [31]


def test_no_exporter_at_all(tmp_path: Path) -> None:
    found = fired(tmp_path, {'up{job="node",instance="n"}': "1x60"}, [4, 59])
    assert [(alert.name, alert.minute) for alert in found] == [("HonestGpuExporterAbsent", 59)]
    assert found[0].description.startswith("no target whose job contains honest-gpu exists")


def test_a_job_of_two_has_a_straggler_below_a_third(tmp_path: Path) -> None:
    """The median of two lies between them."""
    pairs = {"third": Node((Gpu(), Gpu(sm=(0.9, 0.25)))), "half": Node((Gpu(), Gpu(sm=(0.9, 0.4))))}
    found = fired(tmp_path, played(pairs, WRONG * 60), [59])
    straggling = [(a.labels["cluster"], a.labels["gpu"]) for a in found if a.name == "HonestGpuStraggler"]
    assert straggling == [("third", "1")]


@pytest.mark.parametrize(("kind", "expected"), [("PyTorchJob", {"HonestGpuStraggler"}), ("Deployment", set())])
def test_pods_of_a_job_are_peers_and_replicas_are_not(tmp_path: Path, kind: str, expected: set[str]) -> None:
    """A pod a GPU: only who owns them tells that they work together."""
    owned = {}
    for key, text in played({"job": Node((*PEERS, LAZY))}, WRONG * 60).items():
        if "allocation_info" in key:
            gpu = re.findall(r'gpu="(\d)"', key)[0]
            own = f'pod="bert-{gpu}",owner_kind="{kind}",owner_name="bert"'
            owned[key.replace('pod="train-0"', own)] = text
        else:
            owned[key] = text
    assert {alert.name for alert in fired(tmp_path, owned, [59])} == expected


def test_an_fp64_job_is_not_asked_for_tensor_cores(tmp_path: Path) -> None:
    limiter = {'honest_gpu_limiter_seconds_total{limiter="fp64"}': Counter(0, 0.9)}
    cases = {"fp64": CASES["no-tensor"].node.suspect(limiter), "fp32": CASES["no-tensor"].node}
    found = fired(tmp_path, played(cases, WRONG * 90), [89])
    assert [alert.labels["cluster"] for alert in found] == ["fp32"]


def test_a_pool_with_a_doubtful_gpu_is_not_called_full(tmp_path: Path) -> None:
    full = CASES["full-pool"].node
    pool = {"full-pool": Node((*full.gpus, *Node().suspect(LOCKED).gpus))}
    assert "HonestGpuPoolTooSmall" not in {a.name for a in fired(tmp_path, played(pool, WRONG * 90), [89])}


def test_health_alerts_do_not_wait_for_the_measurement(tmp_path: Path) -> None:
    doubtful = {name: HEALTH[name].node.suspect(LOCKED) for name in ("hot", "gone", "slow-source")}
    found = fired(tmp_path, played(doubtful, WRONG * 60), [59])
    for name in doubtful:
        assert HEALTH[name].alert in names(found, name, 59)
