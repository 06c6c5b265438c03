"""From the settings to what the API server adds. Imported only where it is asked for: it loads ssl and http.client."""

from __future__ import annotations

import os
import time

from exporter.attribution.kubernetes import slices
from exporter.attribution.kubernetes.api_server import ApiServer
from exporter.attribution.kubernetes.cluster import PODS, PODS_PATH, SLICES, Cluster
from exporter.attribution.kubernetes.credentials import Credentials, address
from exporter.attribution.kubernetes.following import Following
from exporter.attribution.kubernetes.pod_facts import Wanted, label_names, pod_facts
from exporter.config.options import (
    API_CA,
    API_SERVER,
    API_TOKEN,
    NODE_NAME,
    POD_LABELS,
    POD_OWNER,
    POD_UID,
    RESOURCE_SLICES,
)
from exporter.config.settings import ConfigError, Settings


def build_cluster(settings: Settings) -> Cluster:
    """Raises ConfigError."""
    try:
        host, port = address(settings[API_SERVER], os.environ)
    except ValueError as error:
        raise ConfigError(f"{settings.where(API_SERVER)}: {error}") from error
    try:
        labels = label_names(settings[POD_LABELS])
    except ValueError as error:
        raise ConfigError(f"{settings.where(POD_LABELS)}: {error}") from error
    wanted = Wanted(labels, settings[POD_UID], settings[POD_OWNER])
    credentials, node = Credentials(settings[API_TOKEN], settings[API_CA]), settings[NODE_NAME]
    pods = Following(
        PODS,
        ApiServer(host, port, credentials),
        (PODS_PATH,),
        f"spec.nodeName={node}",
        lambda pod: pod_facts(pod, wanted),
        time.monotonic,
        time.time,
    )
    if not settings[RESOURCE_SLICES]:
        return Cluster(pods)
    return Cluster(
        pods,
        Following(
            SLICES,
            ApiServer(host, port, credentials),
            slices.PATHS,
            slices.selector(node),
            lambda document: slices.resource_slice(document, node),
            time.monotonic,
            time.time,
        ),
    )
