"""From the settings to the attribution: what finds out whose GPU it is."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from exporter.attribution.accounting import Accounting
from exporter.attribution.background import AttributionBackground
from exporter.attribution.holdings import AttributionError, Attributor, DriverProcesses, Sharing
from exporter.attribution.job_mapping import GpustatReader, read_index_files, read_job_files
from exporter.attribution.slurm import MappingFolder, SlurmAttributor
from exporter.attribution.stage import AttributionStage, Listing
from exporter.attribution.users import UserNames
from exporter.config.options import (
    API_SERVER,
    COLLECTOR_KUBERNETES,
    COLLECTOR_PROCESSES,
    COLLECTOR_SLURM,
    NODE_NAME,
    POD_LABELS,
    POD_OWNER,
    POD_RESOURCES,
    POD_UID,
    PROCESS_FAMILIES,
    PROCESS_MOST,
    REPLICAS,
    RESOURCE_NAMES,
    RESOURCE_SLICES,
    SLURM_GPUSTAT,
    SLURM_JOB_MAPPING,
    SLURM_JOBS,
    WORKLOAD_KEEP,
)
from exporter.config.settings import ConfigError, Settings

if TYPE_CHECKING:
    from exporter.attribution.kubernetes.cluster import Cluster

ATTRIBUTION_INTERVAL = 10.0  # seconds between reads of who holds what


def build_attribution(settings: Settings) -> AttributionStage | None:
    """None when nobody is to be asked. Raises ConfigError.

    Kubernetes goes before Slurm before processes: the nearer to who asked for the GPU, the first.
    """
    _check_together(settings)
    users = UserNames()
    cluster = _cluster(settings)
    attributors: list[Attributor] = [_kubernetes(settings, cluster)] if settings[COLLECTOR_KUBERNETES] else []
    slurm = _slurm(settings, users) if settings[COLLECTOR_SLURM] else None
    if slurm is not None:
        attributors.append(slurm)
    accounting = Accounting(settings[WORKLOAD_KEEP])
    helpers = [cluster] if cluster is not None else []
    if not settings[COLLECTOR_PROCESSES]:
        return AttributionStage(_backgrounds(attributors), accounting, helpers=helpers) if attributors else None
    jobs = None if slurm is None else slurm.job
    pods = None if cluster is None else cluster.workload
    from exporter.attribution.processes import ProcessAttributor  # brings psutil

    driver = DriverProcesses()
    processes = ProcessAttributor(driver, users, jobs, pods)
    listing = Listing(processes.command, settings[PROCESS_MOST]) if settings[PROCESS_FAMILIES] else None
    sources = _backgrounds([*attributors, processes])
    return AttributionStage(sources, accounting, processes.owner, helpers, listing, driver)


def _check_together(settings: Settings) -> None:
    if settings[PROCESS_FAMILIES] and not settings[COLLECTOR_PROCESSES]:
        raise ConfigError(f"{settings.where(PROCESS_FAMILIES)}: needs {COLLECTOR_PROCESSES.flag}")
    added = [option for option in (POD_LABELS, POD_UID, POD_OWNER, RESOURCE_SLICES) if settings[option]]
    if not settings[API_SERVER]:
        if added:
            raise ConfigError(f"{settings.where(added[0])}: needs {API_SERVER.flag}, such as in-cluster")
        return
    if not settings[NODE_NAME]:
        raise ConfigError(
            f"{settings.where(API_SERVER)}: needs {NODE_NAME.flag}: only this node's pods are requested "
            f"(in a pod, set {NODE_NAME.variable} from the field spec.nodeName)"
        )
    if not settings[COLLECTOR_KUBERNETES] and not settings[COLLECTOR_PROCESSES]:
        raise ConfigError(
            f"{settings.where(API_SERVER)}: needs {COLLECTOR_KUBERNETES.flag} or {COLLECTOR_PROCESSES.flag}: it adds "
            "to what they find"
        )
    if added and not settings[COLLECTOR_KUBERNETES]:
        raise ConfigError(
            f"{settings.where(added[0])}: needs {COLLECTOR_KUBERNETES.flag}: it adds to the kubelet's list"
        )


def _cluster(settings: Settings) -> Cluster | None:
    """What the API server adds; its client loads ssl and http.client, only where it is asked for."""
    if not settings[API_SERVER]:
        return None
    from exporter.cli.cluster import build_cluster

    return build_cluster(settings)


def _kubernetes(settings: Settings, cluster: Cluster | None) -> Attributor:
    from exporter.attribution.kubernetes.attributor import KubernetesAttributor
    from exporter.attribution.kubernetes.pod_resources import PodResources

    try:
        kubelet = PodResources(settings[POD_RESOURCES])
    except AttributionError as error:
        where = settings.where(COLLECTOR_KUBERNETES)
        raise ConfigError(f"{where}: {error}; {error.remedy}") from error
    return KubernetesAttributor(
        kubelet, resources=settings[RESOURCE_NAMES], replicas=Sharing(settings[REPLICAS]), cluster=cluster
    )


def _backgrounds(attributors: list[Attributor]) -> list[AttributionBackground]:
    return [AttributionBackground(each, ATTRIBUTION_INTERVAL, time.monotonic, time.time) for each in attributors]


def _slurm(settings: Settings, users: UserNames) -> SlurmAttributor:
    folders = [MappingFolder(settings[SLURM_JOBS], read_job_files)]
    gpustat, mapping = settings[SLURM_GPUSTAT], settings[SLURM_JOB_MAPPING]
    if gpustat is not None:
        folders.append(MappingFolder(gpustat, GpustatReader(users)))
    if mapping is not None:
        folders.append(MappingFolder(mapping, read_index_files))
    return SlurmAttributor(folders)
