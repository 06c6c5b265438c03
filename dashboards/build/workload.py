"""Workload: one pod, one job, or several: its ranks side by side."""

from __future__ import annotations

from dashboards.build import variables
from dashboards.build.pages import Page, Row
from dashboards.build.palette import CLAIMED, GREEN, LIMITERS, PARTS, RANKED, STATES, VERMILLION
from dashboards.build.panels import GPU_HOURS, MINIMAL, TABLE, THIRD, Query, Size, Text, bars, lines, number, threshold
from dashboards.build.promql import CLUSTER, DEVICE, STEPS, portion, rates, selector, share
from dashboards.build.tables import rows

_AT = f'{CLUSTER}, instance=~"$node"'  # only the nodes that hold it are asked: the variable lists them
_WHO = f'{_AT}, namespace=~"$namespace", pod=~"$pod", job_id=~"$job_id"'
_ON = f"on ({DEVICE})"
_HELD = f" and {_ON} honest_gpu_allocation_info{{{_WHO}}}"
_RANK = "{{instance}} GPU {{gpu}} {{gpu_instance}}"
_HOLDERS = f"max by ({DEVICE}, namespace, pod, job_id, user) (honest_gpu_allocation_info{{{_WHO}}})"
_NONE = "The selection holds no GPU. Attribution comes from --collector.kubernetes, --collector.slurm or .processes."
_FEW = "The selection holds no GPU"
_LOWEST = 16
_TALL = Size(8, 10)
_SHARED = "numbers of a shared GPU are those of the whole GPU, not of this workload."
_PROFILING = f"{_NONE} Or the GPUs have no profiling data: see the dashboard Exporter health."


def _mean(counter: str, of: str, extra: str = "") -> str:
    """By device, over those 5 minutes at whose end this workload held it: not what others did before."""

    def over(series: str) -> str:
        return f"sum by ({DEVICE}) (sum_over_time((rate({series}[5m]){_HELD}){STEPS}))"

    observed = selector("honest_gpu_observed_seconds_total", _AT, f'of="{of}"')
    return f"{over(selector(counter, _AT, extra))} / {over(observed)}"


def _named(value: str) -> str:
    """A value by device, with the names of those who hold it: one series a holder."""
    return f"{_HOLDERS} * {_ON} group_left () ({value})"


def _of_part(part: str) -> str:
    return _mean("honest_gpu_time_seconds_total", "parts", f'part="{part}"')


def _totals() -> Row:
    def hours(parts: str) -> str:
        series = f'honest_gpu_workload_time_seconds_total{{{_WHO}, part=~"{parts}"}}'
        return f"sum(increase({series}[$__range])) / 3600"

    gone = "its end: the counters outlive a workload by some minutes only. A shared GPU may be left out."
    return Row(
        "This workload, over the time range",
        [
            number(
                Text(
                    "GPUs",
                    "GPUs and instances held at the end of the time range.",
                    "whether they are in use.",
                    _NONE,
                    _FEW,
                ),
                "short",
                Query(f"count(max by ({DEVICE}) (honest_gpu_allocation_info{{{_WHO}}}))", instant=True),
                size=Size(6, 4),
            ),
            number(
                Text("GPU-hours", "Charged to the workload, all parts.", gone, _NONE, _FEW),
                GPU_HOURS,
                Query(hours(".+"), instant=True),
                size=Size(6, 4),
            ),
            number(
                Text("Working", "GPU-hours in which the busiest unit did work.", gone, _NONE, _FEW),
                GPU_HOURS,
                Query(hours("working"), instant=True),
                size=Size(6, 4),
                colour=GREEN,
            ),
            number(
                Text("Wasted", "GPU-hours in which the SMs were empty: hollow or idle.", gone, _NONE, _FEW),
                GPU_HOURS,
                Query(hours("hollow|idle"), instant=True),
                size=Size(6, 4),
                colour=VERMILLION,
            ),
            rows(
                Text(
                    "GPU-hours by workload and part",
                    "As charged by the exporters: a shared GPU is split by per-process samples where there are any.",
                    gone,
                    _NONE,
                ),
                GPU_HOURS,
                Query(
                    "sum by (namespace, pod, job_id, user, part)"
                    f" (increase(honest_gpu_workload_time_seconds_total{{{_WHO}}}[$__range])) / 3600",
                    instant=True,
                    form=TABLE,
                ),
                columns={
                    "namespace": "Namespace",
                    "pod": "Pod",
                    "job_id": "Job",
                    "user": "User",
                    "part": "Part",
                    "Value #A": "GPU-hours",
                },
                sort="GPU-hours",
            ),
            rows(
                Text(
                    "Memory and processes",
                    "Device memory held by its processes, and their number, at the end of the time range.",
                    "how much of it is actually used: frameworks reserve memory.",
                    f"Processes are not known: the source reports none, or attribution has no process ids. {MINIMAL}",
                ),
                "bytes",
                Query(
                    f"sum by (namespace, pod, job_id, user) (honest_gpu_workload_memory_bytes{{{_WHO}}})",
                    instant=True,
                    form=TABLE,
                ),
                Query(
                    f"sum by (namespace, pod, job_id, user) (honest_gpu_workload_processes{{{_WHO}}})",
                    instant=True,
                    form=TABLE,
                ),
                columns={
                    "namespace": "Namespace",
                    "pod": "Pod",
                    "job_id": "Job",
                    "user": "User",
                    "Value #A": "Memory",
                    "Value #B": "Processes",
                },
                units={"Processes": "short"},
            ),
        ],
    )


def _ranks() -> Row:
    sm = share("honest_gpu_sm_active_seconds_total", "sm", _AT, only=_HELD)
    return Row(
        "Ranks side by side",
        [
            rows(
                Text(
                    "Ranks",
                    "Mean for each GPU held at the end of the time range, over the time the selection held it "
                    "(to 5 minutes); one row per pod or job.",
                    f"which rank number a GPU is; {_SHARED} A missing value is not known, not 0.",
                    f"{_NONE} Or the time range is shorter than 5 minutes.",
                ),
                "percentunit",
                *(
                    Query(_named(expr), instant=True, form=TABLE)
                    for expr in (
                        _mean("honest_gpu_busy_seconds_total", "claim"),
                        *(_of_part(part) for part in PARTS if part != "unexplained"),
                        _mean("honest_gpu_tensor_active_seconds_total", "tensor"),
                    )
                ),
                columns={
                    "instance": "Node",
                    "gpu": "GPU",
                    "gpu_instance": "Instance",
                    "pod": "Pod",
                    "job_id": "Job",
                    "Value #A": "Claimed",
                    "Value #B": "Working",
                    "Value #C": "Stalled",
                    "Value #D": "Hollow",
                    "Value #E": "Idle",
                    "Value #F": "Tensor active",
                },
                size=Size(24, 9),
                sort="Idle",
                links={
                    "Node": variables.to_node("var-node=${__data.fields.Node}"),
                    "GPU": variables.to_node("var-node=${__data.fields.Node}&var-gpu=${__data.fields.GPU}"),
                },
            ),
            bars(
                Text(
                    "Working, by rank",
                    "Share of time in which the busiest unit did work, as in the table: "
                    f"the {_LOWEST} lowest, lowest first.",
                    f"the other ranks of a larger job; {_SHARED}",
                    f"{_PROFILING} Or the time range is shorter than 5 minutes.",
                    "No profiling data",
                ),
                "percentunit",
                Query(f"sort(bottomk({_LOWEST}, {_of_part('working')}))", _RANK, instant=True),
                size=_TALL,
                colour=GREEN,
                high=1,
            ),
            lines(
                Text("SM active, by rank", "At least one warp was resident, mean over SMs.", _SHARED, _PROFILING),
                "percentunit",
                Query(sm, _RANK),
                size=_TALL,
                high=1,
            ),
            lines(
                Text(
                    "Stragglers",
                    "SM active of each rank over the median of all selected ranks, while that is 1 % or more. Dashed, "
                    "as in the alerts: below the lower line a rank does less than its peers, above the upper one they "
                    "wait for it.",
                    "a straggler for which the others wait by spinning: their SM active is high, its own is normal. "
                    "Select one job: the median of several means nothing.",
                    _PROFILING,
                ),
                "short",
                Query(f"({sm}) / scalar(quantile(0.5, {sm}) > 0.01)", _RANK),
                threshold("straggler", "limit for stragglers"),
                threshold("slow_rank", "limit for slow ranks"),
                size=_TALL,
            ),
        ],
    )


def _phases() -> Row:
    def part(name: str) -> Query:
        extra = f'part="{name}"'
        return Query(share("honest_gpu_time_seconds_total", "parts", _AT, by="part", extra=extra, only=_HELD), name)

    claim = share("honest_gpu_busy_seconds_total", "claim", _AT, by="", only=_HELD)
    limiter = portion("honest_gpu_limiter_seconds_total", "limiter", _AT, only=_HELD)
    return Row(
        "Phases: what all its GPUs did, over time",
        [
            lines(
                Text(
                    "Parts, and the driver's claim",
                    "Mean over the GPUs. Loading, training, checkpoints and the end show as changes of colour.",
                    f"one idle GPU among many: see the ranks; {_SHARED}",
                    _NONE,
                ),
                "percentunit",
                *(part(name) for name in PARTS),
                Query(claim, CLAIMED),
                size=THIRD,
                colours=PARTS,
                stacked=True,
                high=1,
            ),
            lines(
                Text(
                    "States",
                    "How many of the GPUs are in each state.",
                    "states shorter than the exporter's hold time.",
                    f"{_NONE} {MINIMAL}",
                ),
                "short",
                Query(rates("honest_gpu_state_seconds_total", _AT, "state", only=_HELD), "{{state}}"),
                size=THIRD,
                colours=STATES,
                stacked=True,
            ),
            lines(
                Text(
                    "Limiter",
                    "Share of time in which each unit was the busiest.",
                    "how busy it was: a unit that leads by a little counts fully.",
                    f"{_NONE} Or no pipe is measured on them. {MINIMAL}",
                ),
                "percentunit",
                Query(limiter, "{{limiter}}"),
                size=THIRD,
                colours=LIMITERS,
                stacked=True,
                high=1,
            ),
        ],
    )


def _tensor() -> Row:
    peak = f"honest_gpu_tensor_peak_ratio{{{_AT}}}{_HELD}"
    ceiling = f'honest_gpu_attainable_ratio{{{_AT}, unit="tensor"}}{_HELD}'
    dram = share("honest_gpu_dram_active_seconds_total", "dram", _AT, by="", only=_HELD)
    active = share("honest_gpu_tensor_active_seconds_total", "tensor", _AT, by="", only=_HELD)
    return Row(
        "Tensor cores against their ceiling",
        [
            lines(
                Text(
                    "Tensor against the datasheet",
                    "Tensor activity x clock, as a share of the model's dense peak: the best, the median and the worst "
                    "GPU. Dashed: what public measurements reached on the model.",
                    "the data type: a GPU computing in TF32 can be at its ceiling and run at half of BF16's speed. "
                    "The ceiling needs --metrics.include honest_gpu_attainable_ratio and a published figure.",
                    f"The peak of this model is unknown (--hardware.peaks-file), or nothing is measured. {MINIMAL}",
                ),
                "percentunit",
                Query(f"max({peak})", "best"),
                Query(f"quantile(0.5, {peak})", "median"),
                Query(f"min({peak})", "worst"),
                Query(f"min({ceiling})", "limit published"),
                colours=RANKED,
            ),
            lines(
                Text(
                    "Tensor and DRAM active",
                    "Mean over the GPUs. Both low while SMs are active: launch or latency bound.",
                    "useful from useless work: padding and recomputation count as work.",
                    _PROFILING,
                ),
                "percentunit",
                Query(active, "tensor"),
                Query(dram, "dram"),
                colours={"tensor": LIMITERS["tensor"], "dram": LIMITERS["dram"]},
                high=1,
            ),
        ],
    )


def page() -> Page:
    """The dashboard."""
    return Page(
        uid="honest-gpu-workload",
        title="Honest GPU / Workload",
        says="One pod or job: ranks side by side, phases, and how close its tensor cores come to their ceiling.",
        since="now-1h",
        variables=[
            variables.cluster(),
            variables.namespace(),
            variables.pod(),
            variables.job(),
            variables.holding_nodes(),
        ],
        rows=[_totals(), _ranks(), _phases(), _tensor()],
    )
