"""One node a kind of trouble: while all is well nothing fires, while something is wrong exactly these alerts do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tests.rules.nodes import Counter, Gauge, Gpu, Node, Spec, Stamp


@dataclass(frozen=True, slots=True)
class Case:
    """``wait``: minutes for which the trouble must last. ``also``: what fires beside it, if it lasts."""

    node: Node
    alert: str
    wait: int
    also: frozenset[str] = frozenset()
    input: str = ""  # of efficiency alerts: measurement or claim


TINY = Gpu(busy=(0.97, 0.9), sm=(0.9, 0.01), tensor=(0.5, 0.002), dram=(0.4, 0.001))
IDLE = Gpu(busy=(0.97, 0.0), sm=(0.9, 0.0), tensor=(0.5, 0.0), dram=(0.4, 0.0))
HANG = Gpu(busy=(0.97, 1.0), sm=(0.9, 0.03), tensor=(0.5, 0.0), dram=(0.4, 0.0), state="suspected_hang")
STARVED = Gpu(busy=(0.97, 0.2), sm=(0.9, 0.15), state="input_starved", tensor=(0.5, 0.1), dram=(0.4, 0.1))
SPINNING = Gpu(busy=(0.97, 0.99), sm=(0.9, 0.35), state="communication_bound", tensor=(0.5, 0.05), dram=(0.4, 0.1))
LAZY = Gpu(sm=(0.9, 0.3))
WAITING = Gpu(sm=(0.9, 0.35))
PEERS = (Gpu(), Gpu(), Gpu())
NO_TENSOR = Gpu(tensor=(0.5, 0.0))
FULL = Gpu(tensor=(0.5, 0.85))
LOCKED: Mapping[str, Spec] = {
    'honest_gpu_profiling_state{state="ok"}': Gauge(1, 0),
    'honest_gpu_profiling_state{state="locked_by_other"}': Gauge(None, 1),
}
STUCK: Mapping[str, Spec] = {
    'honest_gpu_profiling_state{state="ok"}': Gauge(1, 0),
    'honest_gpu_profiling_state{state="stuck_at_zero"}': Gauge(None, 1),
}
OLD: Mapping[str, Spec] = {"honest_gpu_last_sample_timestamp_seconds": Stamp(frozen=True)}


def _board(**more: Spec) -> Node:
    return Node((Gpu(more={_name(key): spec for key, spec in more.items()}),))


def _name(key: str) -> str:
    """``family__label__value`` as a series' name: keyword arguments cannot hold braces."""
    family, *label = key.split("__")
    return f'honest_gpu_{family}{{{label[0]}="{label[1]}"}}' if label else f"honest_gpu_{family}"


EFFICIENCY: Mapping[str, Case] = {
    "tiny-kernels": Case(Node((TINY,)), "HonestGpuDivergence", 15, input="measurement"),
    "one-of-eight-idles": Case(
        Node((IDLE, *(Gpu() for _ in range(7)))),
        "HonestGpuIdleAllocated",
        30,
        also=frozenset({"HonestGpuStraggler"}),
        input="claim",
    ),
    "no-process": Case(
        Node((Gpu(busy=(0.97, 0.0), sm=(0.9, 0.0), more={"honest_gpu_processes": Gauge(1, 0)}),)),
        "HonestGpuAllocatedNoProcess",
        30,
        input="claim",
    ),
    "hang": Case(
        Node((HANG,)), "HonestGpuSuspectedHang", 12, also=frozenset({"HonestGpuDivergence"}), input="measurement"
    ),
    "straggler": Case(Node((*PEERS, LAZY)), "HonestGpuStraggler", 15, input="measurement"),
    "slow-rank": Case(Node((WAITING, WAITING, WAITING, Gpu())), "HonestGpuSlowRank", 15, input="measurement"),
    "starved": Case(Node((STARVED,)), "HonestGpuInputStarved", 15, input="measurement"),
    "spinning": Case(Node((SPINNING,)), "HonestGpuCommunicationBound", 30, input="measurement"),
    "power-capped": Case(
        _board(clock_event_seconds_total__reason__power_cap=Counter(0, 1)), "HonestGpuPowerCapped", 30, input="claim"
    ),
    "no-tensor": Case(Node((NO_TENSOR,)), "HonestGpuLowTensorUse", 30, input="measurement"),
    "full-pool": Case(Node((FULL, FULL)), "HonestGpuPoolTooSmall", 60, input="measurement"),
}
HEALTH: Mapping[str, Case] = {
    "hot": Case(_board(clock_event_seconds_total__reason__hw_thermal=Counter(0, 0.5)), "HonestGpuThrottled", 15),
    "locked": Case(Node().suspect(LOCKED), "HonestGpuProfilingLost", 10),
    "stuck": Case(Node().suspect(STUCK), "HonestGpuProfilingStuck", 5),
    "gone": Case(Node((Gpu(), Gpu()), {"honest_gpu_present_gpus": Gauge(2, 1)}), "HonestGpuMissing", 5),
    "gone-after-a-reboot": Case(
        Node((Gpu(), Gpu()), {"honest_gpu_present_gpus": Gauge(2, 1), "honest_gpu_expected_gpus": Gauge(2, 1)}),
        "HonestGpuMissing",
        5,
    ),
    "source-down": Case(Node(more={'honest_gpu_up{source="nvml"}': Gauge(1, 0)}), "HonestGpuExporterDown", 5),
    "absent": Case(Node(more={"up": Gauge(1, 0)}), "HonestGpuExporterAbsent", 5),
    "slow-scrape": Case(Node(more={"scrape_duration_seconds": Gauge(0.005, 4)}), "HonestGpuExporterSlow", 15),
    "slow-source": Case(
        Node(more={'honest_gpu_source_read_seconds{source="nvml"}': Gauge(0.01, 9)}), "HonestGpuExporterSlow", 15
    ),
    "old": Case(Node().suspect(OLD), "HonestGpuStale", 5),
    "sampler-hangs": Case(
        Node(more={"honest_gpu_snapshot_timestamp_seconds": Stamp(frozen=True)}), "HonestGpuStale", 5
    ),
    "nobody-knows": Case(
        Node(more={'honest_gpu_attribution_up{source="kubernetes"}': Gauge(1, 0)}), "HonestGpuAttributionDown", 10
    ),
    "unattributed": Case(
        _board(unattributed_time_seconds_total__part__working=Counter(0, 0.5)), "HonestGpuUnattributed", 30
    ),
}
CASES: Mapping[str, Case] = {**EFFICIENCY, **HEALTH}
