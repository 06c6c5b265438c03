"""The table of options (docs/operations.md). A constant that is an Option is in it; there is no second list.

Those that only some commands other than serve have are in ``of_commands``.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from exporter.config import of_commands, parsers
from exporter.config.option import Command, Option, Repeated

T = TypeVar("T")
_SERVING = (Command.SERVE,)
_READING = (Command.SERVE, Command.TEXTFILE, Command.RECORD)
_DIAGNOSING = (*_READING, Command.DOCTOR, Command.PROFILING)
SOURCES = ("auto", "nvml", "dcgm", "dcgm-exporter", "replay", "simulated")


def _each(parse: Callable[[str], T]) -> Callable[[str], tuple[T, ...]]:
    """A parser of one item that gives it as a tuple, so that items add up."""
    return lambda value: (parse(value),)


SOURCE = Option(
    "source",
    parsers.one_of(*SOURCES),
    "auto",
    "Where GPU readings come from. auto picks the best source on this machine. Example: nvml",
    "|".join(SOURCES),
    _READING,
)
SOURCE_URL = Option[str](
    "source.url",
    parsers.text,
    "",
    "Metrics page to read with --source dcgm-exporter. Example: http://127.0.0.1:9400/metrics",
    "URL",
    _READING,
)
SOURCE_PATH = Option[Path | None](
    "source.path",
    parsers.path,
    None,
    "What to play with --source replay: a PyTorch trace, a folder or .tar.gz of one trace per rank, an Nsight Systems "
    "SQLite export, or a recording. Example: trace.json.gz",
    "PATH",
    _READING,
)
SOURCE_WORKLOAD = Repeated[str](
    "source.workload",
    _each(parsers.text),
    (),
    "Workloads for --source simulated, one per GPU; the list is cycled over all GPUs. `list` prints the names. "
    "Example: training-healthy,hang",
    "NAME[,NAME...]",
    _READING,
)
SOURCE_GPUS = Option(
    "source.gpus",
    parsers.whole_number(1, 1024),
    8,
    "Number of GPUs with --source simulated. Example: 4",
    "N",
    _READING,
)
SOURCE_SPEED = Option[float | None](
    "source.speed",
    parsers.speed,
    1.0,
    "Speed of replay and simulated as a multiple of real time, or max for as fast as possible. Example: 10",
    "FACTOR",
    _READING,
)
SOURCE_ONCE = Option(
    "source.once",
    parsers.boolean,
    False,
    "Play replay or simulated once, print a summary, and keep serving the final values until stopped.",
    commands=_READING,
)
WAIT_FOR_GPUS = Option(
    "wait-for-gpus",
    parsers.boolean,
    False,
    "With --source auto or nvml on a machine without a GPU: keep running, report 0 GPUs, and retry.",
)
DCGM_ADDRESS = Option[str](
    "dcgm.address",
    parsers.text,
    "",
    "DCGM hostengine to connect to: HOST:PORT, unix:PATH, or embedded to run DCGM in this process. "
    "Example: localhost:5555",
    "ADDRESS",
    _DIAGNOSING,
)
DCGM_BINDINGS = Option[Path | None](
    "dcgm.bindings",
    parsers.path,
    None,
    "Folder with NVIDIA's Python bindings for DCGM, if they are not in a standard place. "
    "Example: /usr/local/dcgm/bindings/python3",
    "DIR",
    _DIAGNOSING,
)
SAMPLING_INTERVAL = Option(
    "sampling.interval",
    parsers.duration,
    1.0,
    "Time between two reads of the GPUs; at least 100ms. Example: 500ms",
    "DURATION",
    _DIAGNOSING,
)
LISTEN_ADDRESS = Repeated[str](
    "web.listen-address",
    _each(parsers.text),
    (":9836",),
    "Address to listen on: :PORT, HOST:PORT or [IPV6]:PORT. Example: 127.0.0.1:9836",
    "ADDRESS",
    _SERVING,
)
TELEMETRY_PATH = Option(
    "web.telemetry-path",
    parsers.url_path,
    "/metrics",
    "Path of the metrics page. Example: /gpu-metrics",
    "PATH",
    _SERVING,
)
WEB_CONFIG = Option[Path | None](
    "web.config.file",
    parsers.path,
    None,
    "TLS and basic authentication, in the format of the Prometheus exporter-toolkit. Example: web.yaml",
    "FILE",
    _SERVING,
)
METRICS_PROFILE = Option(
    "metrics.profile",
    parsers.one_of("minimal", "default", "full"),
    "default",
    "How much to export: about 30 or 100 series per GPU, or everything. Example: minimal",
    "minimal|default|full",
)
METRICS_INCLUDE = Repeated[str](
    "metrics.include",
    _each(parsers.glob),
    (),
    "Metrics to export in addition to the profile. Example: honest_gpu_ecc_*",
    "GLOB",
)
METRICS_EXCLUDE = Repeated[str](
    "metrics.exclude",
    _each(parsers.glob),
    (),
    "Metrics never to export; takes precedence over --metrics.include. Example: honest_gpu_process_*",
    "GLOB",
)
COMPAT_JOBSTATS = Option(
    "compat.jobstats",
    parsers.boolean,
    False,
    "Also export the nvidia_gpu_* series that jobstats and its dashboards query; needs attribution to Slurm jobs.",
)
PRICES = Repeated[tuple[str, float]](
    "cost.price-per-hour",
    _each(parsers.price),
    (),
    "Price of one GPU for one hour, for all models or for those that match a pattern. Example: *H100*=2.50",
    "PRICE|MODEL=PRICE",
)
CURRENCY = Option("cost.currency", parsers.currency, "USD", "Currency of the prices. Example: EUR", "CODE")
COLLECTOR_KUBERNETES = Option(
    "collector.kubernetes",
    parsers.boolean,
    False,
    "Attribute GPUs to pods, using the kubelet's pod-resources API.",
)
POD_RESOURCES = Option(
    "kubernetes.pod-resources-socket",
    parsers.path,
    Path("/var/lib/kubelet/pod-resources/kubelet.sock"),
    "Socket of the kubelet's pod-resources API. Example: /var/lib/kubelet/pod-resources/kubelet.sock",
    "PATH",
)
RESOURCE_NAMES = Repeated[str](
    "kubernetes.resource-names",
    _each(parsers.resource),
    ("nvidia.com/*",),
    "Extended resources that are GPUs. Example: nvidia.com/gpu*",
    "GLOB",
)
REPLICAS = Option(
    "kubernetes.replicas",
    parsers.one_of("time_sliced", "mps"),
    "time_sliced",
    "How this cluster shares a GPU among replicas; the device plugin's ids do not say. Example: mps",
    "time_sliced|mps",
)
API_SERVER = Option[str](
    "kubernetes.api-server",
    parsers.text,
    "",
    "Also ask the API server, to leave out pods that have ended and to find pod names by UID: in-cluster, or its URL. "
    "Needs --kubernetes.node-name. Example: in-cluster",
    "in-cluster|URL",
)
NODE_NAME = Option[str](
    "kubernetes.node-name",
    parsers.node_name,
    "",
    "Name of this node; only its pods are requested from the API server. Example: gpu-node-1",
    "NAME",
)
API_TOKEN = Option(
    "kubernetes.token-file",
    parsers.path,
    Path("/var/run/secrets/kubernetes.io/serviceaccount/token"),
    "Bearer token for the API server; read again for each connection. Example: /etc/honest-gpu-exporter/token",
    "FILE",
)
API_CA = Option(
    "kubernetes.ca-file",
    parsers.path,
    Path("/var/run/secrets/kubernetes.io/serviceaccount/ca.crt"),
    "CA that signed the API server's certificate. Example: /etc/kubernetes/pki/ca.crt",
    "FILE",
)
POD_LABELS = Repeated[str](
    "kubernetes.pod-labels",
    _each(parsers.kubernetes_label),
    (),
    "Pod labels to copy to honest_gpu_allocation_info as label_NAME; needs the API server. Example: team",
    "NAME",
)
POD_UID = Option(
    "kubernetes.pod-uid",
    parsers.boolean,
    False,
    "Add pod_uid to honest_gpu_allocation_info; needs the API server.",
)
POD_OWNER = Option(
    "kubernetes.pod-owner",
    parsers.boolean,
    False,
    "Add owner_kind, owner_name and queue to honest_gpu_allocation_info; needs the API server.",
)
RESOURCE_SLICES = Option(
    "kubernetes.resource-slices",
    parsers.boolean,
    False,
    "Resolve dynamic resource allocation (driver gpu.nvidia.com) to GPUs; needs the API server.",
)
COLLECTOR_SLURM = Option(
    "collector.slurm", parsers.boolean, False, "Attribute GPUs to Slurm jobs, using the files that a prolog writes."
)
SLURM_JOBS = Option(
    "slurm.jobs-folder",
    parsers.path,
    Path("/run/honest-gpu-exporter/jobs"),
    "Folder that the prolog of this exporter writes (packaging/slurm). Example: /run/honest-gpu-exporter/jobs",
    "DIR",
)
SLURM_GPUSTAT = Option[Path | None](
    "slurm.gpustat-folder",
    parsers.path,
    None,
    "Folder that the prolog of jobstats writes. Example: /run/gpustat",
    "DIR",
)
SLURM_JOB_MAPPING = Option[Path | None](
    "slurm.job-mapping-folder",
    parsers.path,
    None,
    "Job mapping folder of dcgm-exporter: one file per GPU index. Example: /run/dcgm-job-map",
    "DIR",
)
COLLECTOR_PROCESSES = Option(
    "collector.processes",
    parsers.boolean,
    False,
    "Attribute GPUs to the jobs, containers and users of their processes; needs the host's PID namespace.",
)
PROCESS_FAMILIES = Option(
    "processes.families",
    parsers.boolean,
    False,
    "Export memory and SM use of each process, labelled pid and command; needs --collector.processes.",
)
PROCESS_MOST = Option(
    "processes.most",
    parsers.whole_number(1, 4096),
    64,
    "Maximum number of processes to export per GPU; the rest are only counted. Example: 16",
    "N",
)
WORKLOAD_KEEP = Option(
    "workload.keep",
    parsers.duration,
    300.0,
    "How long to export the counters of a pod or job after it has ended. Example: 10m",
    "DURATION",
)
COLLECTOR_HOST = Option(
    "collector.host",
    parsers.boolean,
    True,
    "Export pressure stall information, RDMA traffic, and the CPU time of processes that use a GPU. "
    "Only with --source auto, nvml or dcgm.",
)
PROCFS = Option(
    "path.procfs",
    parsers.path,
    Path("/proc"),
    "Where the host's /proc is mounted; its process ids must be those that the driver reports. Example: /host/proc",
    "DIR",
    (Command.SERVE, Command.TEXTFILE, Command.DOCTOR),
)
STATE_HOLD = Option(
    "state.hold",
    parsers.duration,
    30.0,
    "Averaging window for a GPU's state, and the shortest time in one state. Example: 1m",
    "DURATION",
)
THRESHOLDS = Repeated[tuple[str, float]](
    "state.threshold",
    _each(parsers.named_ratio),
    (),
    "Change a threshold of the state rules; docs/states.md lists them. Example: sm_launch=0.3",
    "NAME=RATIO",
)
PEAKS_FILE = Option[Path | None](
    "hardware.peaks-file",
    parsers.path,
    None,
    "Peak rates of further GPU models, in the format of exporter/peaks.yaml. Example: peaks.yaml",
    "FILE",
)
LOG_LEVEL = Option(
    "log.level",
    parsers.one_of("debug", "info", "warning", "error"),
    "info",
    "Log messages of this severity and above. Example: debug",
    "debug|info|warning|error",
    _DIAGNOSING,
)
LOG_FORMAT = Option(
    "log.format",
    parsers.one_of("text", "json"),
    "text",
    "Log as plain text or as one JSON object per line. Example: json",
    "text|json",
    _DIAGNOSING,
)

OPTIONS: tuple[Option[object], ...] = tuple(
    value for value in (*vars().values(), *vars(of_commands).values()) if isinstance(value, Option)
)


def by_name() -> dict[str, Option[object]]:
    """The table by name."""
    return {option.name: option for option in OPTIONS}
