"""The exporter itself: build, configuration, web server."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from exporter.core.snapshot import Snapshot
from exporter.metrics.family import Family, Group, Profile, Sample, Type, labels
from exporter.version import VERSION

BUILD = Family(
    "build",
    Type.INFO,
    "",
    "Version of the exporter and of its Python.",
    labels=("version", "python"),
    profile=Profile.MINIMAL,
)
RELOAD_OK = Family(
    "config_last_reload_successful",
    Type.GAUGE,
    "",
    "0 when the last reload was rejected and the previous configuration is still in force.",
    labels=(),
)
RELOAD_TIME = Family(
    "config_last_reload_success_timestamp_seconds",
    Type.GAUGE,
    "seconds",
    "When the configuration in force was loaded.",
    labels=(),
)
CONNECTIONS = Family(
    "web_connections", Type.COUNTER, "", "Connections by outcome.", labels=("event",), profile=Profile.FULL
)


@dataclass(slots=True)
class OwnState:
    """What the wiring knows of the daemon; read when a Snapshot is turned into samples."""

    reload_successful: bool = True
    reload_timestamp: float = 0.0
    connections: Callable[[], Mapping[str, int]] = dict  # how often what happened, asked for when it is needed


def _build(_: Snapshot) -> Iterator[Sample]:
    yield Sample(BUILD, labels(version=VERSION, python=platform.python_version()), 1)


BUILD_GROUP = Group("The exporter itself", (BUILD,), _build)  # without a web server and reloads


def own_group(state: OwnState) -> Group:
    """The group of this daemon."""

    def collect(snapshot: Snapshot) -> Iterator[Sample]:
        yield from _build(snapshot)
        yield Sample(RELOAD_OK, "", float(state.reload_successful))
        yield Sample(RELOAD_TIME, "", state.reload_timestamp)
        for event, count in state.connections().items():
            yield Sample(CONNECTIONS, labels(event=event), count)

    return Group("The exporter itself", (BUILD, RELOAD_OK, RELOAD_TIME, CONNECTIONS), collect)
