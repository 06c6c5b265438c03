"""From the settings to what is attached to the core's numbers: hardware, holders, host, states."""

from __future__ import annotations

import time
from collections.abc import Callable

from exporter import strict_yaml
from exporter.assembly import Assembly
from exporter.attribution.accounting import Accounting
from exporter.attribution.background import Background
from exporter.attribution.holdings import AttributionError, Attributor, Sharing
from exporter.attribution.job_mapping import GpustatReader, read_index_files, read_job_files
from exporter.attribution.processes import ProcessAttributor
from exporter.attribution.slurm import MappingFolder, SlurmAttributor
from exporter.attribution.stage import AttributionStage
from exporter.attribution.users import UserNames
from exporter.config.errors import ConfigError
from exporter.config.options import (
    COLLECTOR_HOST,
    COLLECTOR_KUBERNETES,
    COLLECTOR_PROCESSES,
    COLLECTOR_SLURM,
    PEAKS_FILE,
    POD_RESOURCES,
    REPLICAS,
    RESOURCE_NAMES,
    SLURM_GPUSTAT,
    SLURM_JOB_MAPPING,
    SLURM_JOBS,
    SOURCE,
    STATE_HOLD,
    THRESHOLDS,
    WORKLOAD_KEEP,
)
from exporter.config.settings import Settings
from exporter.core.snapshot import Snapshot
from exporter.hardware.peaks import PeakTable
from exporter.hardware.peaks import load as load_peaks
from exporter.hardware.stage import HardwareStage
from exporter.host.background import HostBackground
from exporter.host.reader import HostReader
from exporter.state.stage import StateStage
from exporter.state.thresholds import Thresholds, reasons

DRIVERS = frozenset({"auto", "nvml", "dcgm"})  # sources that read this very node
ATTRIBUTION_INTERVAL = 10.0  # seconds between reads of who holds what


def build_assembly(settings: Settings, publish: Callable[[Snapshot], None]) -> Assembly:
    """What is attached before a Snapshot is published. Raises ConfigError."""
    host = None
    if settings[COLLECTOR_HOST] and settings[SOURCE] in DRIVERS:
        host = HostBackground(HostReader(), time.monotonic)
    return Assembly(
        publish=publish,
        hardware=HardwareStage(_peaks(settings)),
        states=StateStage(_thresholds(settings), settings[STATE_HOLD]),
        attribution=_attribution(settings),
        host=host,
    )


def _attribution(settings: Settings) -> AttributionStage | None:
    """Kubernetes goes before Slurm before processes: the nearer to who asked for the GPU, the first."""
    users = UserNames()
    attributors: list[Attributor] = [_kubernetes(settings)] if settings[COLLECTOR_KUBERNETES] else []
    slurm = _slurm(settings, users) if settings[COLLECTOR_SLURM] else None
    if slurm is not None:
        attributors.append(slurm)
    accounting = Accounting(settings[WORKLOAD_KEEP])
    if not settings[COLLECTOR_PROCESSES]:
        return AttributionStage(_backgrounds(attributors), accounting) if attributors else None
    if slurm is None:
        processes = ProcessAttributor(lambda: stage.processes, users)
    else:
        processes = ProcessAttributor(lambda: stage.processes, users, jobs=slurm.job)
    stage = AttributionStage(_backgrounds([*attributors, processes]), accounting, processes.owner)
    return stage


def _kubernetes(settings: Settings) -> Attributor:
    from exporter.attribution.kubernetes.attributor import KubernetesAttributor
    from exporter.attribution.kubernetes.pod_resources import PodResources

    try:
        kubelet = PodResources(settings[POD_RESOURCES])
    except AttributionError as error:
        where = settings.where(COLLECTOR_KUBERNETES)
        raise ConfigError(f"{where}: {error}; {error.remedy}") from error
    return KubernetesAttributor(kubelet, resources=settings[RESOURCE_NAMES], replicas=Sharing(settings[REPLICAS]))


def _backgrounds(attributors: list[Attributor]) -> list[Background]:
    return [Background(each, ATTRIBUTION_INTERVAL, time.monotonic, time.time) for each in attributors]


def _slurm(settings: Settings, users: UserNames) -> SlurmAttributor:
    folders = [MappingFolder(settings[SLURM_JOBS], read_job_files)]
    gpustat, mapping = settings[SLURM_GPUSTAT], settings[SLURM_JOB_MAPPING]
    if gpustat is not None:
        folders.append(MappingFolder(gpustat, GpustatReader(users)))
    if mapping is not None:
        folders.append(MappingFolder(mapping, read_index_files))
    return SlurmAttributor(folders)


def _thresholds(settings: Settings) -> Thresholds:
    try:
        return Thresholds().replaced(dict(settings[THRESHOLDS]))
    except KeyError as error:
        known = ", ".join(reasons())
        raise ConfigError(f"{settings.where(THRESHOLDS)}: no threshold {error}; there are: {known}") from error


def _peaks(settings: Settings) -> PeakTable:
    path = settings[PEAKS_FILE]
    try:
        return load_peaks(None if path is None else strict_yaml.load(path.read_bytes()))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{settings.where(PEAKS_FILE)}: {path}: {error}") from error
