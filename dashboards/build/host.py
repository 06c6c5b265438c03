"""The host's side of a node: what the GPUs may have been waiting for."""

from __future__ import annotations

from dashboards.build.pages import Row
from dashboards.build.palette import GPUS, RESOURCES
from dashboards.build.panels import MINIMAL, QUARTER, Query, Text, lines
from dashboards.build.promql import WINDOW, rates

_OFF = f"The host is not looked at: --no-collector.host, a source that is no driver, or a kernel without PSI. {MINIMAL}"
_NONE = (
    "No process that holds a GPU is known: --no-collector.host, a source that is no driver, or hidden process ids. "
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
                    "CPU time of the processes' main threads, by GPU: near 1 a process, the interpreter is pegged.",
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
                    "CPUs that the processes on a GPU and those below them use.",
                    "how many they could have: a container's limit is not read.",
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
                    "Bytes a second that the processes on a GPU read from storage, and that RDMA ports moved.",
                    "reads that the page cache answered, files mapped into memory, and whose RDMA traffic it was.",
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
