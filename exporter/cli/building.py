"""From the settings to a source."""

from __future__ import annotations

import time
from collections.abc import Callable

from exporter import strict_yaml
from exporter.assembly import Assembly
from exporter.config.errors import ConfigError
from exporter.config.options import (
    COLLECTOR_HOST,
    PEAKS_FILE,
    SOURCE,
    SOURCE_GPUS,
    SOURCE_ONCE,
    SOURCE_PATH,
    SOURCE_URL,
    SOURCE_WORKLOAD,
    STATE_HOLD,
    WAIT_FOR_GPUS,
)
from exporter.config.settings import Settings
from exporter.core.snapshot import Snapshot
from exporter.hardware.peaks import PeakTable
from exporter.hardware.peaks import load as load_peaks
from exporter.hardware.stage import HardwareStage
from exporter.host.background import HostBackground
from exporter.host.reader import HostReader
from exporter.model import Source, SourceError
from exporter.sources.waiting import WaitingSource
from exporter.state.stage import StateStage
from exporter.state.thresholds import Thresholds

DRIVERS = frozenset({"auto", "nvml", "dcgm"})  # sources that read this very node


def build_source(settings: Settings) -> Source:
    """The source that the settings name. ConfigError for a wrong setting, SourceError when it cannot do its job."""
    kind = settings[SOURCE]
    if kind == "simulated":
        return _simulated(settings)
    if kind == "replay":
        return _replay(settings)
    if kind == "dcgm-exporter":
        return _dcgm_exporter(settings)
    return WaitingSource("auto", _no_gpu) if settings[WAIT_FOR_GPUS] else _no_gpu()


def check_source(settings: Settings) -> None:
    """What can be told of the source's settings without reading a GPU or a whole trace. Raises ConfigError."""
    kind, path = settings[SOURCE], settings[SOURCE_PATH]
    if kind == "replay" and path is not None and not path.exists():
        raise ConfigError(f"{settings.where(SOURCE_PATH)}: {path}: no such file or folder")
    if kind in ("simulated", "dcgm-exporter"):
        build_source(settings).close()


def _simulated(settings: Settings) -> Source:
    from exporter.sources.simulated.source import simulated_source

    try:
        return simulated_source(settings[SOURCE_WORKLOAD], settings[SOURCE_GPUS], loop=not settings[SOURCE_ONCE])
    except ValueError as error:
        raise ConfigError(f"{settings.where(SOURCE_WORKLOAD)}: {error}") from error


def _replay(settings: Settings) -> Source:
    from exporter.sources.replay.opening import open_replay
    from exporter.sources.replay.traces import TraceError

    path = settings[SOURCE_PATH]
    assert path is not None  # checked with the settings
    try:
        return open_replay(path, loop=not settings[SOURCE_ONCE])
    except TraceError as error:
        raise SourceError(str(error)) from error


def _dcgm_exporter(settings: Settings) -> Source:
    from exporter.sources.scrape.source import ExporterSource

    try:
        return ExporterSource(settings[SOURCE_URL])
    except ValueError as error:
        raise ConfigError(f"{settings.where(SOURCE_URL)}: {error}") from error


def build_assembly(settings: Settings, publish: Callable[[Snapshot], None]) -> Assembly:
    """What is attached to the core's numbers before they are published."""
    host = None
    if settings[COLLECTOR_HOST] and settings[SOURCE] in DRIVERS:
        host = HostBackground(HostReader(), time.monotonic)
    return Assembly(
        publish=publish,
        hardware=HardwareStage(_peaks(settings)),
        states=StateStage(Thresholds(), settings[STATE_HOLD]),
        host=host,
    )


def _peaks(settings: Settings) -> PeakTable:
    path = settings[PEAKS_FILE]
    try:
        return load_peaks(None if path is None else strict_yaml.load(path.read_bytes()))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{settings.where(PEAKS_FILE)}: {path}: {error}") from error


def _no_gpu() -> Source:
    raise SourceError(
        "no NVIDIA GPU can be read here: looked for the driver's library libnvidia-ml.so.1",
        "install the NVIDIA driver and check `nvidia-smi`, or try --source=simulated",
    )
