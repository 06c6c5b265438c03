"""From the settings to a source."""

from __future__ import annotations

from exporter.config.errors import ConfigError
from exporter.config.options import (
    DCGM_ADDRESS,
    DCGM_BINDINGS,
    SAMPLING_INTERVAL,
    SOURCE,
    SOURCE_GPUS,
    SOURCE_ONCE,
    SOURCE_PATH,
    SOURCE_URL,
    SOURCE_WORKLOAD,
    WAIT_FOR_GPUS,
)
from exporter.config.settings import Settings
from exporter.model import Source, SourceError
from exporter.sources.waiting import WaitingSource


def build_source(settings: Settings) -> Source:
    """The source that the settings name. ConfigError for a wrong setting, SourceError when it cannot do its job."""
    kind = settings[SOURCE]
    if kind == "simulated":
        return _simulated(settings)
    if kind == "replay":
        return _replay(settings)
    if kind == "dcgm-exporter":
        return _dcgm_exporter(settings)
    if kind == "dcgm":
        return _dcgm(settings)
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


def _dcgm(settings: Settings) -> Source:
    from exporter.sources.dcgm.bindings import find_bindings
    from exporter.sources.dcgm.source import DcgmSource

    bindings = find_bindings(settings[DCGM_BINDINGS])
    try:
        return DcgmSource(settings[DCGM_ADDRESS], bindings=bindings, interval=settings[SAMPLING_INTERVAL])
    except ValueError as error:
        raise ConfigError(f"{settings.where(DCGM_ADDRESS)}: {error}") from error


def _no_gpu() -> Source:
    raise SourceError(
        "no NVIDIA GPU can be read here: looked for the driver's library libnvidia-ml.so.1",
        "install the NVIDIA driver and check `nvidia-smi`, or try --source=simulated",
    )
