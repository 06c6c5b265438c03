"""From the settings to a source."""

from __future__ import annotations

import logging

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
from exporter.config.settings import ConfigError, Settings
from exporter.model import Source, SourceError

log = logging.getLogger(__name__)


def build_sources(settings: Settings) -> list[Source]:
    """The sources that the settings ask for. ConfigError for a wrong setting, SourceError when they cannot work."""
    kind = settings[SOURCE]
    if kind == "simulated":
        return [_simulated(settings)]
    if kind == "replay":
        return [_replay(settings)]
    if kind == "dcgm-exporter":
        return [_dcgm_exporter(settings)]
    if kind == "dcgm" or settings[DCGM_ADDRESS]:
        return [_dcgm(settings, settings[DCGM_ADDRESS]), *_holders(settings[DCGM_ADDRESS])]
    return _drivers(settings)


def check_source(settings: Settings) -> None:
    """What can be told of the source's settings without reading a GPU or a whole trace. Raises ConfigError."""
    kind, path = settings[SOURCE], settings[SOURCE_PATH]
    if kind == "replay" and path is not None and not path.exists():
        raise ConfigError(f"{settings.where(SOURCE_PATH)}: {path}: no such file or folder")
    if kind in ("simulated", "dcgm-exporter"):
        for source in build_sources(settings):
            source.close()


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


def _dcgm(settings: Settings, address: str) -> Source:
    from exporter.sources.dcgm.bindings import find_bindings
    from exporter.sources.dcgm.source import DcgmSource

    bindings = find_bindings(settings[DCGM_BINDINGS])
    try:
        return DcgmSource(address, bindings=bindings, interval=settings[SAMPLING_INTERVAL])
    except ValueError as error:
        raise ConfigError(f"{settings.where(DCGM_ADDRESS)}: {error}") from error


def _embedded(settings: Settings) -> Source:
    """SourceError when DCGM's library or its bindings are not installed."""
    from exporter.sources.dcgm.library import require

    require()
    return _dcgm(settings, "embedded")


def _holders(address: str) -> list[Source]:
    """DCGM does not tell who holds a GPU: the driver does, where the hostengine is on this node."""
    from exporter.sources.dcgm.address import parse_address
    from exporter.sources.nvml.probe import probe
    from exporter.sources.nvml.source import NvmlSource

    if not parse_address(address).local:
        log.info("processes on the GPUs are unknown: the hostengine at %s is on another machine", address)
        return []
    try:
        probe()
    except SourceError as error:
        log.info("processes on the GPUs are unknown: %s", error)
        return []
    return [NvmlSource(processes_only=True)]


def _drivers(settings: Settings) -> list[Source]:
    """The driver, from Hopper on all that is needed; for older GPUs an embedded DCGM where it is installed."""
    from exporter.sources.nvml.probe import probe
    from exporter.sources.nvml.source import NvmlSource

    try:
        found = probe()
    except SourceError as error:
        if settings[WAIT_FOR_GPUS]:
            log.warning("%s; waiting for GPUs", error)
            return [NvmlSource()]
        raise SourceError(
            str(error), f"{error.remedy}; to try the exporter without a GPU: --source=simulated"
        ) from error
    unmeasured = [gpu for gpu in found.gpus if not gpu.gpm]
    if settings[SOURCE] == "auto" and unmeasured:
        try:
            embedded = _embedded(settings)
        except SourceError as error:
            for gpu in unmeasured:
                log.warning(
                    "GPU %d (%s) is not measured, only the driver's claim is known: %s", gpu.index, gpu.model, error
                )
            log.warning("run a DCGM hostengine and set --dcgm.address, such as localhost:5555")
        else:
            log.info("measuring with embedded DCGM: %d of %d GPUs have no GPM", len(unmeasured), len(found.gpus))
            return [embedded, NvmlSource(processes_only=True)]
    return [NvmlSource()]
