"""From the settings to the stages of the assembly: hardware, attribution, host, states."""

from __future__ import annotations

import time
from collections.abc import Callable

from exporter import strict_yaml
from exporter.assembly import Assembly
from exporter.cli.attribution import build_attribution
from exporter.config.option import RENAMED, hint
from exporter.config.options import COLLECTOR_HOST, PEAKS_FILE, SOURCE, STATE_HOLD, THRESHOLDS
from exporter.config.settings import ConfigError, Settings
from exporter.core.snapshot import Snapshot
from exporter.hardware.peaks import PeakTable
from exporter.hardware.peaks import load as load_peaks
from exporter.hardware.stage import HardwareStage
from exporter.host.background import HostBackground
from exporter.host.reader import HostReader
from exporter.state.stage import StateStage
from exporter.state.thresholds import Thresholds, reasons

DRIVERS = frozenset({"auto", "nvml", "dcgm"})  # sources that read the GPUs of this node


def build_assembly(settings: Settings, publish: Callable[[Snapshot], None]) -> Assembly:
    """What is attached before a Snapshot is published. Raises ConfigError."""
    host = None
    if settings[COLLECTOR_HOST] and settings[SOURCE] in DRIVERS:
        host = HostBackground(HostReader(), time.monotonic)
    return Assembly(
        publish=publish,
        hardware=HardwareStage(_peaks(settings)),
        states=StateStage(_thresholds(settings), settings[STATE_HOLD]),
        attribution=build_attribution(settings),
        host=host,
    )


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
