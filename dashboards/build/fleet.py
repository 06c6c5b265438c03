"""Fleet: for operators and those who pay. Queries recorded series, so that it opens with 2,000 GPUs."""

from __future__ import annotations

from dashboards.build import variables
from dashboards.build.pages import Page, Row
from dashboards.build.palette import CLAIMED, GREEN, GREY, PARTS, STATES, VERMILLION
from dashboards.build.panels import GPU_HOURS, MINIMAL, QUARTER, TABLE, Query, Size, Text, bars, lines, number
from dashboards.build.promql import CLUSTER, DEVICE, STEPS, hours
from dashboards.build.tables import grid, rows

POINTS = 300
TALL = Size(8, 10)
_ON = f"on ({DEVICE})"
_MODEL = 'model=~"$model"'
_OF_MODEL = f"and {_ON} honest_gpu_info{{{CLUSTER}, {_MODEL}}}"
_TIME = f"model:honest_gpu_time_seconds:rate5m{{{CLUSTER}, {_MODEL}}}"
_BUSY = f"gpu:honest_gpu_busy:ratio_rate5m{{{CLUSTER}}} {_OF_MODEL}"
_GAP = f"gpu:honest_gpu_busy:ratio_rate5m{{{CLUSTER}}} - gpu:honest_gpu_sm_active:ratio_rate5m{{{CLUSTER}}}"
_WORKING = f'gpu:honest_gpu_time:ratio_rate5m{{{CLUSTER}, part="working"}}'
_EMPTY_RULES = (
    "No recorded series. Are this project's rules loaded (rules/*.yml), and is the time range 5 minutes or more?"
)
_RULES = "No recorded series"
_SPACE = variables.to_workload("var-namespace=${__data.fields.Namespace}")


def _part(name: str) -> str:
    return f'model:honest_gpu_time_seconds:rate5m{{{CLUSTER}, {_MODEL}, part="{name}"}}'


def _share_of_range(name: str) -> str:
    return f"sum(sum_over_time({_part(name)}{STEPS})) / sum(sum_over_time({_TIME}{STEPS}))"


def _headline() -> Row:
    mig = "MIG boards have no driver claim and are left out."
    return Row(
        "Claimed against honest, over the time range",
        [
            number(
                Text(
                    "GPUs",
                    "Boards currently listed by the exporters.",
                    "GPUs on nodes whose exporter cannot be scraped. Not filtered by model.",
                    "Prometheus has no series from any exporter at the end of the time range.",
                    "No exporter is scraped",
                ),
                "short",
                Query(f"sum(honest_gpu_present_gpus{{{CLUSTER}}})", instant=True),
            ),
            number(
                Text(
                    "Claimed",
                    "utilization.gpu: share of time in which any kernel ran, mean over GPUs and time.",
                    f"whether more than one thread block ran. {mig}",
                    f"{_EMPTY_RULES} Or all boards are in MIG mode.",
                    _RULES,
                ),
                "percentunit",
                Query(f"sum_over_time(sum({_BUSY}){STEPS}) / sum_over_time(count({_BUSY}){STEPS})", instant=True),
                decimals=1,
            ),
            number(
                Text(
                    "Working",
                    "Share of GPU time in which the busiest unit did work. An upper bound on useful work.",
                    "whether the work was useful. Perfect matrix products reach 0.8 to 0.9.",
                    f"{_EMPTY_RULES} Or nothing is measured.",
                    _RULES,
                ),
                "percentunit",
                Query(_share_of_range("working"), instant=True),
                colour=GREEN,
                decimals=1,
            ),
            number(
                Text(
                    "Hollow",
                    "Share of GPU time in which the driver claims busy but the SMs were empty.",
                    "whether launches were too small or too far apart.",
                    f"{_EMPTY_RULES} Or nothing is measured.",
                    _RULES,
                ),
                "percentunit",
                Query(_share_of_range("hollow"), instant=True),
                colour=VERMILLION,
                decimals=1,
            ),
            number(
                Text(
                    "Idle",
                    "Share of GPU time in which nothing ran.",
                    "why: no job, a slow loader, a blocked host.",
                    f"{_EMPTY_RULES} Or nothing is measured.",
                    _RULES,
                ),
                "percentunit",
                Query(_share_of_range("idle"), instant=True),
                colour=GREY,
                decimals=1,
            ),
            number(
                Text(
                    "Unattributed",
                    "GPU-hours of allocated GPUs that could not be charged to a workload. Not filtered by model.",
                    "whose they were: GPUs shared without per-process samples, or failing attribution.",
                    "No GPU is allocated, or attribution is off (--collector.kubernetes, --collector.slurm, "
                    f"--collector.processes), or the rules are not loaded. {MINIMAL}",
                    "No attribution",
                ),
                GPU_HOURS,
                Query(f"sum({hours(f'cluster:honest_gpu_unattributed_seconds:rate5m{{{CLUSTER}}}')})", instant=True),
            ),
            lines(
                Text(
                    "GPUs by part, and the driver's claim",
                    "GPU time by part, as a number of GPUs. Dashed: GPUs that the driver claims are busy.",
                    f"which GPU it was. {mig} A MIG instance counts as one GPU.",
                    _EMPTY_RULES,
                ),
                "short",
                *(Query(f"sum({_part(part)})", part) for part in PARTS),
                Query(f"sum({_BUSY})", CLAIMED),
                size=Size(24, 10),
                colours=PARTS,
                stacked=True,
                points=POINTS,
            ),
        ],
    )


def _hours() -> Row:
    state = f"model:honest_gpu_state_seconds:rate5m{{{CLUSTER}, {_MODEL}}}"
    return Row(
        "GPU-hours",
        [
            bars(
                Text(
                    "GPU-hours by part",
                    "Where the GPU-hours of the time range went.",
                    "time in which no exporter was scraped: it is not counted. A MIG instance's hour counts as one.",
                    _EMPTY_RULES,
                    "No recorded series: are the rules loaded?",
                ),
                GPU_HOURS,
                Query(f"sum by (part) ({hours(_TIME)})", "{{part}}", instant=True),
                size=TALL,
                colours=PARTS,
            ),
            bars(
                Text(
                    "GPU-hours by state",
                    "What the GPUs were doing.",
                    "more than the rules in docs/states.md; unknown: a deciding input is missing.",
                    f"{_EMPTY_RULES} {MINIMAL}",
                    "No recorded series: are the rules loaded?",
                ),
                GPU_HOURS,
                Query(f"sort_desc(sum by (state) ({hours(state)}))", "{{state}}", instant=True),
                size=TALL,
                colours=STATES,
            ),
            lines(
                Text(
                    "GPUs by state",
                    "The same, over time.",
                    "states shorter than the hold time of the exporter.",
                    f"{_EMPTY_RULES} {MINIMAL}",
                ),
                "short",
                Query(f"sum by (state) ({state})", "{{state}}"),
                size=TALL,
                colours=STATES,
                stacked=True,
                points=POINTS,
            ),
        ],
    )


def _waste() -> Row:
    space = f'{CLUSTER}, namespace=~"$namespace"'
    held = f"namespace:honest_gpu_workload_time_seconds:rate5m{{{space}}}"
    wasted = f"namespace:honest_gpu_wasted_seconds:rate5m{{{space}}}"
    jobs = f"job_id:honest_gpu_workload_time_seconds:rate5m{{{CLUSTER}}}"
    lost = f"job_id:honest_gpu_wasted_seconds:rate5m{{{CLUSTER}}}"
    blind = "why it was wasted, and time that could not be split among workloads sharing a GPU. Not filtered by model."
    return Row(
        "Waste: allocated GPU-hours in which the SMs were empty (hollow or idle)",
        [
            rows(
                Text(
                    "By namespace",
                    "GPU-hours held by pods, and how many of them were hollow or idle.",
                    blind,
                    "No pod held a GPU, or pods are not attributed (--collector.kubernetes).",
                ),
                GPU_HOURS,
                Query(f"sum by (namespace) ({hours(held)})", instant=True, form=TABLE),
                Query(f"sum by (namespace) ({hours(wasted)})", instant=True, form=TABLE),
                Query(
                    f"sum by (namespace) (sum_over_time({wasted}{STEPS}))"
                    f" / sum by (namespace) (sum_over_time({held}{STEPS}))",
                    instant=True,
                    form=TABLE,
                ),
                columns={"namespace": "Namespace", "Value #A": "Held", "Value #B": "Wasted", "Value #C": "Share"},
                units={"Share": "percentunit"},
                sort="Wasted",
                links={"Namespace": _SPACE},
            ),
            rows(
                Text(
                    "By Slurm account and user",
                    "GPU-hours held by jobs, and how many of them were hollow or idle.",
                    blind,
                    "No job held a GPU, or jobs are not attributed (--collector.slurm).",
                ),
                GPU_HOURS,
                Query(f"sum by (account, user) ({hours(jobs)})", instant=True, form=TABLE),
                Query(f"sum by (account, user) ({hours(lost)})", instant=True, form=TABLE),
                Query(
                    f"sum by (account, user) (sum_over_time({lost}{STEPS}))"
                    f" / sum by (account, user) (sum_over_time({jobs}{STEPS}))",
                    instant=True,
                    form=TABLE,
                ),
                columns={
                    "account": "Account",
                    "user": "User",
                    "Value #A": "Held",
                    "Value #B": "Wasted",
                    "Value #C": "Share",
                },
                units={"Share": "percentunit"},
                sort="Wasted",
            ),
        ],
    )


def _cost() -> Row:
    none = f"The exporters run without --cost.price-per-hour, or the rules are not loaded. {MINIMAL}"
    brief = "No price is set"
    mig = "A MIG instance costs its compute slices."
    cost = f"model:honest_gpu_cost_per_hour:rate5m{{{CLUSTER}, {_MODEL}}}"
    empty = f'model:honest_gpu_cost_per_hour:rate5m{{{CLUSTER}, {_MODEL}, part=~"hollow|idle"}}'
    spaces = f'namespace:honest_gpu_wasted_cost_per_hour:rate5m{{{CLUSTER}, namespace=~"$namespace"}}'
    return Row(
        "Cost",
        [
            number(
                Text(
                    "Price of the fleet",
                    "Configured price per hour of all listed boards, by currency. Not filtered by model.",
                    "discounts, reservations, power and staff.",
                    none,
                    brief,
                ),
                "short",
                Query(
                    f"sum by (currency) (cluster:honest_gpu_price_per_hour:sum{{{CLUSTER}}})",
                    "{{currency}} per hour",
                    instant=True,
                ),
                size=QUARTER,
                named=True,
                decimals=2,
            ),
            number(
                Text(
                    "Paid for empty SMs",
                    f"Cost of the hollow and idle hours in the time range, whether the GPU was allocated or not. {mig}",
                    "whether anyone could have used them.",
                    none,
                    brief,
                ),
                "short",
                Query(f"sum by (currency) ({hours(empty)})", "{{currency}}", instant=True),
                size=QUARTER,
                named=True,
                colour=VERMILLION,
                decimals=2,
            ),
            lines(
                Text(
                    "Cost per hour, by part",
                    f"The price of the GPUs, split like their time. {mig}",
                    "time in which no exporter was scraped: it costs nothing here. Several currencies are stacked on "
                    "one another: read them separately.",
                    none,
                ),
                "short",
                *(
                    Query(f'sum by (currency) ({cost[:-1]}, part="{part}"}})', f"{part} {{{{currency}}}}")
                    for part in PARTS
                ),
                size=QUARTER,
                colours=PARTS,
                stacked=True,
                points=POINTS,
            ),
            rows(
                Text(
                    "Wasted cost by namespace",
                    "Cost of the hollow and idle hours held by pods in the time range.",
                    "shared GPUs: they are charged to nobody.",
                    f"{none} Or no pod held a GPU, or pods are not attributed (--collector.kubernetes).",
                ),
                "short",
                Query(f"topk(20, sum by (namespace, currency) ({hours(spaces)}))", instant=True, form=TABLE),
                columns={"namespace": "Namespace", "currency": "Currency", "Value #A": "Wasted"},
                sort="Wasted",
                links={"Namespace": _SPACE},
                size=QUARTER,
            ),
        ],
    )


def _which() -> Row:
    return Row(
        "Which GPUs",
        [
            rows(
                Text(
                    "Top ten divergences",
                    "GPUs with the largest gap between the driver's claim and SM active: the mean over all 5-minute "
                    "steps of the time range for which both are known.",
                    "why. Not listed: MIG instances (no claim), GPUs without profiling data, and GPUs that no exporter "
                    "lists at the end of the range.",
                    f"No GPU has both a claim and SM active. {_EMPTY_RULES}",
                ),
                "percentunit",
                Query(f"topk(10, avg_over_time(({_GAP}){STEPS}) {_OF_MODEL})", instant=True, form=TABLE),
                columns={
                    "instance": "Node",
                    "node": "Kubernetes node",
                    "gpu": "GPU",
                    "uuid": "UUID",
                    "Value #A": "Claimed but not active",
                },
                sort="Claimed but not active",
                size=Size(24, 9),
                links={
                    "Node": variables.to_node("var-node=${__data.fields.Node}"),
                    "GPU": variables.to_node("var-node=${__data.fields.Node}&var-gpu=${__data.fields.GPU}"),
                },
            ),
            grid(
                Text(
                    "Heat map of GPUs: working",
                    "Share of the last 5 minutes in which the busiest unit did work: a row per node, a column per GPU. "
                    "The stronger the colour, the more work.",
                    "what a dash means: no such GPU, or no pipe measured. A MIG board shows the mean of its instances.",
                    _EMPTY_RULES,
                ),
                "percentunit",
                Query(
                    f"avg by (instance, gpu) ({_WORKING} {_OF_MODEL})",
                    instant=True,
                    form=TABLE,
                ),
                row="instance",
                heading="Node",
                column="gpu",
                size=Size(24, 14),
                link=variables.to_node("var-node=${__data.fields.Node}"),
            ),
        ],
    )


def page() -> Page:
    """The dashboard."""
    return Page(
        uid="honest-gpu-fleet",
        title="Honest GPU / Fleet",
        says="What all GPUs are claimed to do, what they did, and what the difference costs.",
        since="now-24h",
        refresh="5m",
        variables=[variables.cluster(), variables.gpu_model(), variables.namespace()],
        rows=[_headline(), _hours(), _waste(), _cost(), _which()],
    )
