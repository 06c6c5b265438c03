"""The table of options (docs/operations.md): each is a flag, an environment variable and a key of the YAML file."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from exporter.config import parsers

T_co = TypeVar("T_co", covariant=True)
ENVIRONMENT_PREFIX = "HONEST_GPU_"


class Command(enum.Enum):
    """What the program can be asked to do."""

    SERVE = "serve"
    RECORD = "record"
    TOP = "top"
    DOCTOR = "doctor"
    PROFILING = "profiling"


_READING = (Command.SERVE, Command.RECORD)
_SERVING = (Command.SERVE,)
_LOOKING = (Command.SERVE, Command.RECORD, Command.DOCTOR, Command.PROFILING)
SOURCES = ("auto", "nvml", "dcgm", "dcgm-exporter", "replay", "simulated")


@dataclass(frozen=True)
class Option(Generic[T_co]):
    """One option. ``name`` is dotted; ``parse`` takes one text; ``default`` is the value when nobody says anything."""

    name: str
    parse: Callable[[str], T_co]
    default: T_co
    help: str
    metavar: str = ""
    commands: tuple[Command, ...] = _SERVING

    @property
    def flag(self) -> str:
        return f"--{self.name}"

    @property
    def variable(self) -> str:
        """Its name in the environment."""
        return ENVIRONMENT_PREFIX + self.name.upper().replace(".", "_").replace("-", "_")

    @property
    def switch(self) -> bool:
        """True when the flag takes no value."""
        return self.default is True or self.default is False


@dataclass(frozen=True)
class Repeated(Option[tuple[T_co, ...]]):
    """An option that takes several values: repeated as a flag, comma-separated in the environment, a list in YAML."""


def _each(parse: Callable[[str], T_co]) -> Callable[[str], tuple[T_co, ...]]:
    """A parser of one item that gives it as a tuple, so that items add up."""
    return lambda value: (parse(value),)


SOURCE = Option("source", parsers.one_of(*SOURCES), "auto", "how to read GPUs", "|".join(SOURCES), _READING)
SOURCE_URL = Option[str](
    "source.url", parsers.text, "", "dcgm-exporter: the other exporter's /metrics", "URL", _READING
)
SOURCE_PATH = Option[Path | None](
    "source.path",
    parsers.path,
    None,
    "replay: PyTorch trace, folder or .tar.gz of ranks, Nsight Systems SQLite export, or recording",
    "PATH",
    _READING,
)
SOURCE_WORKLOAD = Repeated[str](
    "source.workload",
    _each(parsers.text),
    (),
    "simulated: one workload a GPU, repeated to --source.gpus; `list` prints them",
    "A[,B...]",
    _READING,
)
SOURCE_GPUS = Option("source.gpus", parsers.whole_number(1, 1024), 8, "simulated: number of GPUs", "N", _READING)
SOURCE_SPEED = Option[float | None](
    "source.speed", parsers.speed, 1.0, "replay, simulated: times real time, or max", "X", _READING
)
SOURCE_ONCE = Option(
    "source.once",
    parsers.boolean,
    False,
    "replay, simulated: end after one pass and print a summary; the numbers are served until stopped",
    commands=_READING,
)
DCGM_ADDRESS = Option[str](
    "dcgm.address", parsers.text, "", "hostengine: HOST:PORT, unix:PATH, or embedded", "ADDRESS", _LOOKING
)
DCGM_BINDINGS = Option[Path | None](
    "dcgm.bindings",
    parsers.path,
    None,
    "folder of NVIDIA's Python bindings, where DCGM put them elsewhere",
    "DIR",
    _LOOKING,
)
WAIT_FOR_GPUS = Option(
    "wait-for-gpus", parsers.boolean, False, "auto: without a GPU stay, serve present_gpus 0 and look again"
)
SAMPLING_INTERVAL = Option(
    "sampling.interval", parsers.duration, 1.0, "time between reads, at least 100ms", "DURATION", _LOOKING
)
LISTEN_ADDRESS = Repeated[str](
    "web.listen-address", _each(parsers.text), (":9836",), "where to listen (repeatable): :PORT, HOST:PORT", "ADDRESS"
)
TELEMETRY_PATH = Option("web.telemetry-path", parsers.url_path, "/metrics", "path of the metrics", "PATH")
WEB_CONFIG = Option[Path | None](
    "web.config.file", parsers.path, None, "TLS and basic auth, in exporter-toolkit's format", "FILE"
)
PRICES = Repeated[tuple[str, float]](
    "cost.price-per-hour",
    _each(parsers.price),
    (),
    "price of a GPU hour, by model pattern (repeatable)",
    "PRICE|MODEL=PRICE",
)
CURRENCY = Option("cost.currency", parsers.currency, "USD", "label of the prices", "CODE")
THRESHOLDS = Repeated[tuple[str, float]](
    "state.threshold",
    _each(parsers.named_ratio),
    (),
    "another threshold of the state rules (repeatable); docs/states.md lists them",
    "NAME=RATIO",
)
STATE_HOLD = Option(
    "state.hold",
    parsers.duration,
    30.0,
    "window of evidence of a state, and the least time in it (docs/states.md)",
    "DURATION",
)
PEAKS_FILE = Option[Path | None](
    "hardware.peaks-file",
    parsers.path,
    None,
    "peak figures of GPU models, added to those that are known; the format is that of exporter/peaks.yaml",
    "FILE",
)
COLLECTOR_HOST = Option(
    "collector.host",
    parsers.boolean,
    True,
    "pressure, RDMA and the CPU time of processes that hold a GPU (drivers' sources only)",
)
PROCFS = Option(
    "path.procfs",
    parsers.path,
    Path("/proc"),
    "where the host's /proc is mounted; its process ids must be the driver's",
    "DIR",
    (Command.SERVE, Command.DOCTOR),
)
COLLECTOR_KUBERNETES = Option(
    "collector.kubernetes", parsers.boolean, False, "which pod holds which GPU, from the kubelet's pod-resources socket"
)
POD_RESOURCES = Option(
    "kubernetes.pod-resources-socket",
    parsers.path,
    Path("/var/lib/kubelet/pod-resources/kubelet.sock"),
    "the kubelet's socket",
    "PATH",
)
RESOURCE_NAMES = Repeated[str](
    "kubernetes.resource-names", _each(parsers.resource), ("nvidia.com/*",), "resources that are GPUs", "GLOB"
)
REPLICAS = Option(
    "kubernetes.replicas",
    parsers.one_of("time_sliced", "mps"),
    "time_sliced",
    "how replicas share a GPU in this cluster: an id does not tell",
    "time_sliced|mps",
)
API_SERVER = Option[str](
    "kubernetes.api-server",
    parsers.text,
    "",
    "what the kubelet does not tell, from the API server: which pods have ended, names by UID; in-cluster, or its URL",
    "in-cluster|URL",
)
NODE_NAME = Option[str](
    "kubernetes.node-name", parsers.node_name, "", "API server: this node's name; only its pods are asked for", "NAME"
)
API_TOKEN = Option(
    "kubernetes.token-file",
    parsers.path,
    Path("/var/run/secrets/kubernetes.io/serviceaccount/token"),
    "API server: the token, read anew for each connection",
    "FILE",
)
API_CA = Option(
    "kubernetes.ca-file",
    parsers.path,
    Path("/var/run/secrets/kubernetes.io/serviceaccount/ca.crt"),
    "API server: the authority of its certificate",
    "FILE",
)
POD_LABELS = Repeated[str](
    "kubernetes.pod-labels",
    _each(parsers.kubernetes_label),
    (),
    "API server: labels of pods that allocation_info carries, as label_NAME (repeatable)",
    "NAME",
)
POD_UID = Option("kubernetes.pod-uid", parsers.boolean, False, "API server: allocation_info carries pod_uid")
POD_OWNER = Option(
    "kubernetes.pod-owner",
    parsers.boolean,
    False,
    "API server: allocation_info carries owner_kind, owner_name and queue",
)
RESOURCE_SLICES = Option(
    "kubernetes.resource-slices",
    parsers.boolean,
    False,
    "API server: which GPU a device of a resource claim is (dynamic resources, driver gpu.nvidia.com)",
)
COLLECTOR_SLURM = Option(
    "collector.slurm", parsers.boolean, False, "which job holds which GPU, from the files that prologs write"
)
COLLECTOR_PROCESSES = Option(
    "collector.processes",
    parsers.boolean,
    False,
    "whose the processes on a GPU are, by their control group; needs the host's process ids",
)
PROCESS_FAMILIES = Option(
    "processes.families",
    parsers.boolean,
    False,
    "series of single processes (pid, command): memory and SM use; names need --collector.processes",
)
PROCESS_MOST = Option(
    "processes.most",
    parsers.whole_number(1, 4096),
    64,
    "processes shown singly of one device; the rest is counted",
    "N",
)
SLURM_JOBS = Option(
    "slurm.jobs-folder", parsers.path, Path("/run/honest-gpu-exporter/jobs"), "what our prolog writes", "DIR"
)
SLURM_GPUSTAT = Option[Path | None](
    "slurm.gpustat-folder", parsers.path, None, "what jobstats' prolog writes, such as /run/gpustat", "DIR"
)
SLURM_JOB_MAPPING = Option[Path | None](
    "slurm.job-mapping-folder", parsers.path, None, "dcgm-exporter's job mapping: a file a GPU index", "DIR"
)
WORKLOAD_KEEP = Option(
    "workload.keep", parsers.duration, 300.0, "time for which a workload's counters outlive it", "DURATION"
)
METRICS_PROFILE = Option(
    "metrics.profile",
    parsers.one_of("minimal", "default", "full"),
    "default",
    "how many series: about 30, 100 or all",
    "minimal|default|full",
)
METRICS_INCLUDE = Repeated[str](
    "metrics.include", _each(parsers.glob), (), "families to add to the profile (repeatable)", "GLOB"
)
METRICS_EXCLUDE = Repeated[str](
    "metrics.exclude", _each(parsers.glob), (), "families to leave out (repeatable), before all else", "GLOB"
)
LOG_LEVEL = Option(
    "log.level",
    parsers.one_of("debug", "info", "warning", "error"),
    "info",
    "least severity that is logged",
    "debug|info|warning|error",
    _LOOKING,
)
LOG_FORMAT = Option("log.format", parsers.one_of("text", "json"), "text", "one line an event", "text|json", _LOOKING)
RECORD_OUT = Option[Path | None](
    "out", parsers.path, None, "record: file to write, JSON lines compressed with gzip", "FILE", (Command.RECORD,)
)
RECORD_DURATION = Option[float | None](
    "duration",
    parsers.duration,
    None,
    "record: end after this time; else at the end of the input, or when stopped",
    "DURATION",
    (Command.RECORD,),
)
PROFILING_FOR = Option[float | None](
    "for", parsers.duration, None, "pause: resume after this time", "DURATION", (Command.PROFILING,)
)
TOP_URL = Option[str](
    "url",
    parsers.text,
    "http://127.0.0.1:9836",
    "top: the exporter to look at; http://USER:PASSWORD@HOST:PORT where it wants a password",
    "URL",
    (Command.TOP,),
)
TOP_ONCE = Option("once", parsers.boolean, False, "top: print once and leave", commands=(Command.TOP,))

OPTIONS: tuple[Option[object], ...] = (
    SOURCE,
    SOURCE_URL,
    SOURCE_PATH,
    SOURCE_WORKLOAD,
    SOURCE_GPUS,
    SOURCE_SPEED,
    SOURCE_ONCE,
    DCGM_ADDRESS,
    DCGM_BINDINGS,
    WAIT_FOR_GPUS,
    SAMPLING_INTERVAL,
    LISTEN_ADDRESS,
    TELEMETRY_PATH,
    WEB_CONFIG,
    PRICES,
    CURRENCY,
    THRESHOLDS,
    STATE_HOLD,
    PEAKS_FILE,
    COLLECTOR_HOST,
    PROCFS,
    COLLECTOR_KUBERNETES,
    POD_RESOURCES,
    RESOURCE_NAMES,
    REPLICAS,
    API_SERVER,
    NODE_NAME,
    API_TOKEN,
    API_CA,
    POD_LABELS,
    POD_UID,
    POD_OWNER,
    RESOURCE_SLICES,
    COLLECTOR_SLURM,
    COLLECTOR_PROCESSES,
    PROCESS_FAMILIES,
    PROCESS_MOST,
    SLURM_JOBS,
    SLURM_GPUSTAT,
    SLURM_JOB_MAPPING,
    WORKLOAD_KEEP,
    METRICS_PROFILE,
    METRICS_INCLUDE,
    METRICS_EXCLUDE,
    LOG_LEVEL,
    LOG_FORMAT,
    RECORD_OUT,
    RECORD_DURATION,
    PROFILING_FOR,
    TOP_URL,
    TOP_ONCE,
)


def by_name() -> dict[str, Option[object]]:
    """The table by name."""
    return {option.name: option for option in OPTIONS}
