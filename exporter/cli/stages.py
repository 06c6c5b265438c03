"""From the settings to the stages of the assembly: hardware, attribution, host, states."""

from __future__ import annotations

import time
from collections.abc import Callable

from exporter import strict_yaml
from exporter.assembly import Assembly
from exporter.cli.attribution import build_attribution
from exporter.config.option import RENAMED, hint
from exporter.config.options import (
    COLLECTOR_HOST,
    COLLECTOR_PROCESSES,
    PEAKS_FILE,
    PROCFS,
    SOURCE,
    STATE_HOLD,
    THRESHOLDS,
)
from exporter.config.settings import ConfigError, Settings
from exporter.core.snapshot import Snapshot
from exporter.hardware.peaks import PeakTable
from exporter.hardware.peaks import load as load_peaks
from exporter.hardware.stage import HardwareStage
from exporter.host.background import HostBackground
from exporter.state.stage import StateStage
from exporter.state.thresholds import Thresholds, reasons

DRIVERS = frozenset({"auto", "nvml", "dcgm"})  # sources that read the GPUs of this node


def build_assembly(settings: Settings, publish: Callable[[Snapshot], None]) -> Assembly:
    """What is attached before a Snapshot is published. Raises ConfigError."""
    reads_host = settings[COLLECTOR_HOST] and settings[SOURCE] in DRIVERS
    if reads_host or settings[COLLECTOR_PROCESSES]:
        import psutil  # only where processes are read

        # psutil's own global, for the whole of this process: set here, once, before anything is made that reads /proc.
        psutil.PROCFS_PATH = str(settings[PROCFS])
    return Assembly(
        publish=publish,
        hardware=HardwareStage(_peaks(settings)),
        states=StateStage(_thresholds(settings), settings[STATE_HOLD]),
        attribution=build_attribution(settings),
        host=_host() if reads_host else None,
    )


def _host() -> HostBackground:
    from exporter.host.reader import HostReader

    return HostBackground(HostReader(), time.monotonic)


def _thresholds(settings: Settings) -> Thresholds:
    try:
        return Thresholds().replaced(dict(settings[THRESHOLDS]))
    except KeyError as error:
        name, known = str(error.args[0]), reasons()
        advice = hint(name, known, RENAMED, f"expected one of {', '.join(known)}")
        raise ConfigError(f"{settings.where(THRESHOLDS)}: no such threshold: {name}; {advice}") from error


def _peaks(settings: Settings) -> PeakTable:
    path = settings[PEAKS_FILE]
    try:
        return load_peaks(None if path is None else strict_yaml.load(path.read_bytes()))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{settings.where(PEAKS_FILE)}: {path}: {error}") from error
