"""The host's side of a node: what the GPUs may have been waiting for."""

from __future__ import annotations

from dashboards.build.pages import Row
from dashboards.build.palette import GPUS, RESOURCES
from dashboards.build.panels import MINIMAL, QUARTER, Query, Text, lines
from dashboards.build.promql import WINDOW, rates

_OFF = f"Host metrics are off: --no-collector.host, a source other than the driver, or a kernel without PSI. {MINIMAL}"
_NONE = (
    "No process on a GPU is known: --no-collector.host, a source other than the driver, or hidden process ids. "
    f"{MINIMAL}"
)


def host_row(node: str, gpu: str) -> Row:
    """``node``, ``gpu``: matchers of the node's and of the chosen GPUs' series."""
    name = "GPU {{gpu}}"
    return Row(
        "Host",
        [
            lines(
                Text(
                    "Pressure",
                    "Share of time in which at least one task of the node waited for the resource (Linux PSI, some).",
                    "whether it was the GPU's process that waited.",
                    _OFF,
                ),
                "percentunit",
                Query(f'rate(honest_gpu_host_pressure_seconds_total{{{node}, kind="some"}}{WINDOW})', "{{resource}}"),
                size=QUARTER,
                colours=RESOURCES,
            ),
            lines(
                Text(
                    "Main threads",
                    "CPU time of the processes' main threads, by GPU: near 1 per process, they are saturated.",
                    "whether it computes or spins while it waits for the GPU.",
                    _NONE,
                ),
                "short",
                Query(rates("honest_gpu_host_main_thread_cpu_seconds_total", gpu, "gpu"), name),
                size=QUARTER,
                colours=GPUS,
            ),
            lines(
                Text(
                    "CPUs in use",
                    "CPUs used by the processes on a GPU and their descendants.",
                    "how many they could use: a container's limit is not read.",
                    _NONE,
                ),
                "short",
                Query(rates("honest_gpu_host_process_cpu_seconds_total", gpu, "gpu"), name),
                size=QUARTER,
                colours=GPUS,
            ),
            lines(
                Text(
                    "Read from storage; RDMA",
                    "Bytes per second read from storage by the processes on a GPU, and moved by RDMA ports.",
                    "reads served by the page cache, memory-mapped files, and whose RDMA traffic it was.",
                    _NONE,
                ),
                "Bps",
                Query(rates("honest_gpu_host_read_bytes_total", gpu, "gpu"), f"{name} reads"),
                Query(
                    rates("honest_gpu_host_rdma_receive_bytes_total", node, "device, port"), "{{device}}/{{port}} in"
                ),
                Query(
                    rates("honest_gpu_host_rdma_transmit_bytes_total", node, "device, port"), "{{device}}/{{port}} out"
                ),
                size=QUARTER,
                colours=GPUS,
            ),
        ],
    )
