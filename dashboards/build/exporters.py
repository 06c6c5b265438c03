"""The exporters one by one and together: reading, attribution, and what they cost."""

from __future__ import annotations

from dataclasses import replace

from dashboards.build import variables
from dashboards.build.pages import Row
from dashboards.build.palette import RANKED
from dashboards.build.panels import MINIMAL, QUARTER, TABLE, THIRD, Panel, Query, Size, Text, lines, threshold
from dashboards.build.promql import CLUSTER, WINDOW
from dashboards.build.tables import rows

AT = f'{CLUSTER}, instance=~"$node"'
_OURS = f"and on (job, instance) honest_gpu_build_info{{{AT}}}"
# an exporter that is down has no build_info now, but had one in the time range
SEEN = (
    "* on (job, instance) group_left ()"
    f" max by (job, instance) (last_over_time(honest_gpu_build_info{{{AT}}}[$__range]))"
)
NONE = "No selected exporter was scraped in the time range."
LEFT_OUT = "No exporter reports it: --metrics.profile=minimal leaves it out."
AGE = f"time() - honest_gpu_last_sample_timestamp_seconds{{{AT}}}"
_SCRAPE = f"scrape_duration_seconds{{{AT}}} {_OURS}"
_SERIES = f"scrape_samples_scraped{{{AT}}} {_OURS}"
_CPU = f"rate(process_cpu_seconds_total{{{AT}}}{WINDOW}) {_OURS}"
_MEMORY = f"process_resident_memory_bytes{{{AT}}} {_OURS}"
_UPTIME = f"time() - process_start_time_seconds{{{AT}}} {_OURS}"
POINTS = 300


def worst(text: Text, unit: str, expr: str, *more: Query, size: Size = THIRD, most: str = "max") -> Panel:
    """The worst node and the median one: a line per node is unreadable at 250. The table of nodes names the node."""
    text = replace(text, says=f"{text.says} The worst of the selected nodes, and the median.")
    queries = (Query(f"{most}({expr})", "worst"), Query(f"quantile(0.5, {expr})", "median"), *more)
    return lines(text, unit, *queries, size=size, colours=RANKED, points=POINTS)


def nodes() -> Row:
    """A row per node: those that do not answer, then those with the oldest samples."""

    def by_node(expr: str) -> Query:
        return Query(f"max by (instance, node) ({expr})", instant=True, form=TABLE)

    return Row(
        "Node by node",
        [
            rows(
                Text(
                    "Nodes",
                    "One row per exporter, at the end of the time range; of several GPUs or sources the worst. "
                    "--metrics.profile=minimal leaves some columns empty.",
                    "exporters that never answered in the time range.",
                    NONE,
                ),
                "s",
                by_node(f"up{{{AT}}} {SEEN}"),
                by_node(AGE),
                by_node(f"honest_gpu_source_read_seconds{{{AT}}}"),
                by_node(_SCRAPE),
                by_node(_SERIES),
                by_node(_CPU),
                by_node(_MEMORY),
                by_node(_UPTIME),
                columns={
                    "instance": "Node",
                    "node": "Kubernetes node",
                    "Value #A": "Answers",
                    "Value #B": "Age of sample",
                    "Value #C": "Read duration",
                    "Value #D": "Scrape duration",
                    "Value #E": "Series",
                    "Value #F": "CPU cores",
                    "Value #G": "Memory",
                    "Value #H": "Uptime",
                },
                units={"Answers": "bool_yes_no", "Series": "short", "CPU cores": "short", "Memory": "bytes"},
                size=Size(24, 9),
                first="Answers",
                sort="Age of sample",
                links={"Node": variables.to_node("var-node=${__data.fields.Node}")},
            ),
        ],
    )


def reading() -> Row:
    """How long reading and scraping take, and what fails."""
    return Row(
        "Reading",
        [
            worst(
                Text(
                    "Read duration",
                    "Duration of the last read of a source.",
                    "which call was slow.",
                    LEFT_OUT,
                ),
                "s",
                f"honest_gpu_source_read_seconds{{{AT}}}",
                threshold("slow_read_seconds"),
            ),
            lines(
                Text(
                    "Failed reads",
                    "Failed reads per second, by source, over all selected nodes.",
                    "why: see the exporter's log.",
                    LEFT_OUT,
                ),
                "short",
                Query(f"sum by (source) (rate(honest_gpu_source_failures_total{{{AT}}}{WINDOW}))", "{{source}}"),
                size=THIRD,
                points=POINTS,
            ),
            worst(
                Text(
                    "Age of the snapshot",
                    "Time since the served numbers were computed: about the sampling interval when all is well.",
                    "whether a source is silent: see the age of the newest sample.",
                    LEFT_OUT,
                ),
                "s",
                f"time() - honest_gpu_snapshot_timestamp_seconds{{{AT}}}",
            ),
            worst(
                Text("Scrape duration", "As measured by Prometheus.", "the network's share of it.", NONE),
                "s",
                _SCRAPE,
                threshold("slow_scrape_seconds"),
            ),
            worst(
                Text("Series", "Samples per scrape: what the exporter costs Prometheus.", "churn.", NONE),
                "short",
                _SERIES,
            ),
            lines(
                Text(
                    "Connections",
                    "Connections per second by outcome, over all selected nodes; only outcomes that occurred.",
                    "which client it was: see the exporter's log.",
                    "The exporters run without --metrics.include honest_gpu_web_connections_total.",
                ),
                "short",
                Query(f"sum by (event) (rate(honest_gpu_web_connections_total{{{AT}}}{WINDOW})) > 0", "{{event}}"),
                size=THIRD,
                points=POINTS,
            ),
        ],
    )


def attribution() -> Row:
    """Whether attribution works."""
    off = "Attribution is off: --collector.kubernetes, --collector.slurm and --collector.processes are not set."
    at = f"honest_gpu_attribution_last_success_timestamp_seconds{{{AT}}}"
    return Row(
        "Attribution",
        [
            lines(
                Text(
                    "Attribution down",
                    "Nodes on which an attribution source cannot be read, by source.",
                    "whether what a source reports is right.",
                    off,
                ),
                "short",
                Query(f"sum by (source) (1 - honest_gpu_attribution_up{{{AT}}})", "{{source}}"),
                size=THIRD,
                points=POINTS,
            ),
            lines(
                Text(
                    "Age of attribution data",
                    "Time since an attribution source was last read, on the worst of the selected nodes.",
                    "workloads that came and went in between.",
                    f"{off} {MINIMAL}",
                ),
                "s",
                Query(f"max by (source) (time() - {at})", "{{source}}"),
                size=THIRD,
                points=POINTS,
            ),
            lines(
                Text(
                    "Unresolved",
                    "Device ids, files or processes reported by an attribution source that match no device, by kind.",
                    "which ones: see the exporter's log.",
                    f"Nothing is unresolved, or attribution is off. {MINIMAL}",
                ),
                "short",
                Query(f"sum by (source, kind) (honest_gpu_attribution_unresolved{{{AT}}})", "{{source}} {{kind}}"),
                size=THIRD,
                points=POINTS,
            ),
        ],
    )


def itself() -> Row:
    """What the exporters use."""
    return Row(
        "The exporter itself",
        [
            worst(
                Text("CPU", "Cores used by an exporter.", "the driver's own work for it in the kernel.", LEFT_OUT),
                "short",
                _CPU,
                size=QUARTER,
            ),
            worst(
                Text("Memory", "Resident memory of an exporter.", "memory held by the driver on its behalf.", LEFT_OUT),
                "bytes",
                _MEMORY,
                size=QUARTER,
            ),
            worst(
                Text(
                    "Uptime", "Time since an exporter started: its counters start there.", "why it started.", LEFT_OUT
                ),
                "s",
                _UPTIME,
                size=QUARTER,
                most="min",
            ),
            rows(
                Text("Versions", "Exporters by version and Python.", "which nodes: see honest_gpu_build_info.", NONE),
                "string",
                Query(f"count by (version, python) (honest_gpu_build_info{{{AT}}})", instant=True, form=TABLE),
                columns={"version": "Version", "python": "Python", "Value #A": "Exporters"},
                units={"Exporters": "short"},
                size=Size(6, 8),
            ),
        ],
    )
