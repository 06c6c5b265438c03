"""Node and GPU: one node, its GPUs next to each other."""

from __future__ import annotations

from grafana_foundation_sdk.builders import timeseries

from dashboards.build import variables
from dashboards.build.host import host_row
from dashboards.build.pages import Page, Row
from dashboards.build.palette import CLAIMED, GPUS, LIMITERS, PARTS, STATES
from dashboards.build.panels import HEATMAP, MINIMAL, QUARTER, TABLE, THIRD, Query, Size, Text, density, lines
from dashboards.build.promql import CLUSTER, WINDOW, portion, rates, share
from dashboards.build.tables import rows

_NODE = f'{CLUSTER}, instance="$node"'
_GPU = f'{_NODE}, gpu=~"$gpu"'
_NAME = "GPU {{gpu}} {{gpu_instance}}"
_BY = "gpu, gpu_instance"
_PROFILING = "No profiling data: see the dashboard Exporter health."


def _parts() -> Row:
    times = (
        Query(share("honest_gpu_time_seconds_total", "parts", _GPU, by="gpu, part", extra=f'part="{part}"'), part)
        for part in PARTS
    )
    text = Text(
        "GPU $gpu: parts, and the driver's claim",
        "Every second goes to one part: working (the busiest unit did work), stalled (warps resident, waiting), hollow "
        "(claimed busy, SMs empty), idle; unexplained: the available inputs cannot tell. Dashed: utilization.gpu.",
        "what warps waited for, or whether the work was useful. On MIG there is no dashed line (the driver makes no "
        "claim), and the parts are the mean of the instances.",
        "Nothing was measured on this GPU in this time range.",
    )
    claim = Query(share("honest_gpu_busy_seconds_total", "claim", _GPU, by="gpu"), CLAIMED)
    panel = lines(text, "percentunit", *times, claim, colours=PARTS, stacked=True, high=1)
    return Row("Where the time went, by GPU", [panel.repeat("gpu").repeat_direction("h").max_per_row(2)])


def _active(name: str, title: str, says: str, blind: str) -> timeseries.Panel:
    of = name.removesuffix("_active")
    mean = share(f"honest_gpu_{name}_seconds_total", of, _GPU, by=_BY)
    text = Text(title, says, blind, f"{_PROFILING} {MINIMAL}")
    return lines(text, "percentunit", Query(mean, _NAME), size=QUARTER, colours=GPUS, high=1)


def _silicon() -> Row:
    return Row(
        "What the silicon did, and its limit",
        [
            _active(
                "sm_active", "SM active", "At least one warp was resident, mean over SMs.", "whether it did anything."
            ),
            _active(
                "tensor_active",
                "Tensor active",
                "The tensor pipe was active.",
                "for which data type, and whether the GPU ran at full clock.",
            ),
            _active(
                "dram_active",
                "DRAM active",
                "The device memory interface moved data. Full is 0.8 to 0.9.",
                "reading from writing.",
            ),
            _active(
                "sm_occupancy",
                "SM occupancy",
                "Resident warps over the maximum, mean over SMs.",
                "whether more would be faster: low occupancy can be fine.",
            ),
            lines(
                Text(
                    "Limiter",
                    "Share of time in which each unit was the busiest, mean over the selected GPUs that measure pipes.",
                    "how busy it was: a unit that leads by a little counts fully. none: all were below 1 %.",
                    f"No pipe is measured on these GPUs. {MINIMAL}",
                ),
                "percentunit",
                Query(portion("honest_gpu_limiter_seconds_total", "limiter", _GPU), "{{limiter}}"),
                size=THIRD,
                colours=LIMITERS,
                stacked=True,
                high=1,
            ),
            lines(
                Text(
                    "States",
                    "How many of the selected GPUs are in each state.",
                    "states shorter than the exporter's hold time; unknown: a deciding input is missing.",
                    "No states: the exporter runs with --metrics.profile=minimal.",
                ),
                "short",
                Query(rates("honest_gpu_state_seconds_total", _GPU, "state"), "{{state}}"),
                size=THIRD,
                colours=STATES,
                stacked=True,
            ),
            density(
                Text(
                    "Distribution of SM active",
                    "Samples per second by SM active, all selected GPUs: what a mean hides, below the scrape interval.",
                    "anything shorter than the exporter's sampling interval.",
                    f"{_PROFILING} {MINIMAL}",
                ),
                "short",
                "percentunit",
                Query(rates("honest_gpu_sm_active_distribution_bucket", _GPU, "le"), "{{le}}", form=HEATMAP),
                size=THIRD,
            ),
        ],
    )


def _links() -> Row:
    peaks = (
        f"The peak of this model's link is not known (--hardware.peaks-file), or the rate is not measured. {MINIMAL}"
    )
    both = (("transmit", "from"), ("receive", "to"))

    def saturation(kind: str, title: str, says: str, blind: str) -> timeseries.Panel:
        query = Query(f"honest_gpu_{kind}_saturation_ratio{{{_GPU}}}", f"{_NAME} {{{{direction}}}}")
        text = Text(title, f"{says} Dashed: from the GPU.", blind, peaks)
        return lines(text, "percentunit", query, size=QUARTER, colours=GPUS, dashed="transmit", high=1)

    def moved(kind: str, title: str, blind: str) -> timeseries.Panel:
        queries = [
            Query(rates(f"honest_gpu_{kind}_{way}_bytes_total", _GPU, "gpu"), f"GPU {{{{gpu}}}} {word} the GPU")
            for way, word in both
        ]
        says = "Bytes per second, headers may be included. Dashed: from the GPU."
        text = Text(title, says, blind, f"This GPU or source reports no {title} rates. {MINIMAL}")
        return lines(text, "Bps", *queries, size=QUARTER, colours=GPUS, dashed="from the GPU")

    return Row(
        "Links",
        [
            saturation(
                "pcie",
                "PCIe saturation",
                "Rate over that of the widest and fastest link of GPU and slot. Copies reach 0.8 to 0.9.",
                "a link that trained too slow: its generation is in the full profile. Value of the last window.",
            ),
            moved("pcie", "PCIe", "who sent it: GPU-to-GPU and storage traffic look like host traffic."),
            saturation(
                "nvlink",
                "NVLink saturation",
                "Rate over that of all links of the model. The practical maximum is about 0.85.",
                "one slow link among many, or which peer the traffic went to. Value of the last window.",
            ),
            moved("nvlink", "NVLink", "which peer it went to."),
        ],
    )


def _device() -> Row:
    def gauge(title: str, name: str, unit: str, says: str, blind: str) -> timeseries.Panel:
        query = Query(f"honest_gpu_{name}{{{_GPU}}}", _NAME)
        text = Text(title, says, blind, f"This GPU or source does not report it. {MINIMAL}")
        return lines(text, unit, query, size=QUARTER, colours=GPUS)

    held = Query(f"rate(honest_gpu_clock_event_seconds_total{{{_GPU}}}{WINDOW})", "GPU {{gpu}} {{reason}}")
    stalls = Query(rates("honest_gpu_stall_seconds_total", _GPU, _BY), _NAME)
    return Row(
        "Device",
        [
            gauge(
                "SM clock", "sm_clock_hertz", "hertz", "Clock of the SMs.", "why it has this value: see the reasons."
            ),
            lines(
                Text(
                    "Why clocks are held down",
                    "Share of time for which the driver gave this reason; several may apply at once.",
                    "reasons between samples, and how much speed they cost.",
                    f"The driver has given no reason since the exporter started, or the source reports none. {MINIMAL}",
                ),
                "percentunit",
                held,
                size=QUARTER,
                high=1,
            ),
            gauge(
                "Power",
                "power_watts",
                "watt",
                "Drawn by the whole board.",
                "whether work is done: a spinning GPU draws power too.",
            ),
            gauge("Temperature", "temperature_celsius", "celsius", "Of the GPU.", "the hottest point of the board."),
            gauge(
                "Memory used",
                "memory_used_bytes",
                "bytes",
                "Device memory in use.",
                "actual use: frameworks reserve memory.",
            ),
            lines(
                Text(
                    "Stalls below the scrape interval",
                    "Share of time in gaps of two samples or more in which an allocated GPU did nothing.",
                    "shorter gaps, and why.",
                    f"Processes on this GPU are not known, so a gap cannot be told from an unused GPU. {MINIMAL}",
                ),
                "percentunit",
                stalls,
                size=QUARTER,
                colours=GPUS,
                high=1,
            ),
            rows(
                Text(
                    "Xid errors",
                    "By code, since the exporter started, as of the end of the time range.",
                    "when, and errors before the exporter started. NVIDIA's catalogue says what a code means.",
                    f"No Xid since the exporter started. A source that reports none shows the same. {MINIMAL}",
                ),
                "short",
                Query(f"sum by (gpu, xid) (honest_gpu_xid_errors_total{{{_GPU}}})", instant=True, form=TABLE),
                columns={"gpu": "GPU", "xid": "Xid", "Value #A": "Errors"},
                size=QUARTER,
            ),
            lines(
                Text(
                    "PCIe replays",
                    "Replayed packets per second: if above 0 for long, the link is bad.",
                    "which end is bad.",
                    f"This GPU or source does not report it. {MINIMAL}",
                ),
                "short",
                Query(rates("honest_gpu_pcie_replays_total", _GPU, "gpu"), "GPU {{gpu}}"),
                size=QUARTER,
                colours=GPUS,
            ),
        ],
    )


def _whose() -> Row:
    held = (
        "sum by (gpu, gpu_instance, namespace, pod, container, job_id, user, account, sharing)"
        f" (honest_gpu_allocation_info{{{_GPU}}})"
    )
    columns = {
        "gpu": "GPU",
        "gpu_instance": "Instance",
        "namespace": "Namespace",
        "pod": "Pod",
        "container": "Container",
        "job_id": "Job",
        "user": "User",
        "account": "Account",
        "sharing": "Sharing",
    }
    text = Text(
        "Allocations",
        "Which pod or job holds which GPU at the end of the time range; a shared GPU has several rows.",
        "whether the GPU is used.",
        "No GPU is allocated here, or attribution is off (--collector.kubernetes, .slurm, .processes).",
    )
    model = Text(
        "Devices",
        "The GPUs, and where their numbers come from. Form full: all four parts are known.",
        "anything about a GPU that fell off the bus.",
        f"No GPU matches the selection. {MINIMAL}",
    )
    info = (
        "max by (gpu, gpu_instance, uuid, model, driver_version, source, form, simulated)"
        f" (honest_gpu_source_info{{{_GPU}}} * on (job, instance, gpu, uuid, gpu_instance)"
        f" group_left (model, driver_version) honest_gpu_info{{{_GPU}}})"
    )
    return Row(
        "Allocations and devices",
        [
            rows(
                text,
                "string",
                Query(held, instant=True, form=TABLE),
                columns=columns,
                size=Size(12, 8),
                links={
                    "Namespace": variables.to_workload("var-namespace=${__data.fields.Namespace}"),
                    "Pod": variables.to_workload(
                        "var-namespace=${__data.fields.Namespace}&var-pod=${__data.fields.Pod}"
                    ),
                    "Job": variables.to_workload("var-job_id=${__data.fields.Job}"),
                },
            ),
            rows(
                model,
                "string",
                Query(info, instant=True, form=TABLE),
                columns={
                    "gpu": "GPU",
                    "gpu_instance": "Instance",
                    "model": "Model",
                    "uuid": "UUID",
                    "driver_version": "Driver",
                    "source": "Source",
                    "form": "Form",
                    "simulated": "Simulated",
                },
                size=Size(12, 8),
            ),
        ],
    )


def page() -> Page:
    """The dashboard."""
    return Page(
        uid="honest-gpu-node",
        title="Honest GPU / Node and GPU",
        says="One node: what the driver claims for each GPU, what it did, and what limited it.",
        since="now-1h",
        variables=[variables.cluster(), variables.gpu_model(), variables.one_node(), variables.gpus()],
        rows=[_parts(), _silicon(), _links(), host_row(_NODE, _GPU), _device(), _whose()],
    )
