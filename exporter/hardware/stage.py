"""Each device against its hardware, once a sampling window."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from exporter.hardware import mig
from exporter.hardware.idle_floor import IdleFloor
from exporter.hardware.peaks import Peaks, PeakTable
from exporter.hardware.saturation import Saturation, saturation
from exporter.model import Device


@dataclass(frozen=True, slots=True)
class HardwareView:
    """What is known of one device's hardware, and how near it is to its limits."""

    known: bool  # the model is in the table
    saturation: Saturation
    mig_share: float | None = None  # compute slices of a MIG instance over the board's; None: whole, or not known


class HardwareStage:
    """Looks models up once, and learns each board's idle power."""

    def __init__(self, table: PeakTable) -> None:
        self._table = table
        self._peaks: dict[tuple[str, str], Peaks | None] = {}
        self._shares: dict[tuple[str, str], float | None] = {}
        self._floors: dict[str, IdleFloor] = {}

    def update(self, device: Device, values: Mapping[str, float]) -> HardwareView:
        """``values``: means and instants of the last window, by field."""
        peaks, idle = self._find(device), None
        if device.entity.gpu_instance is None:
            floor = self._floors.setdefault(device.entity.uuid, IdleFloor())
            activities = [values[field] for field in ("busy", "graphics_engine", "sm") if field in values]
            idle = floor.feed(values.get("power"), max(activities, default=None))
        return HardwareView(peaks is not None, saturation(values, peaks, idle), self._mig_share(device))

    def _mig_share(self, device: Device) -> float | None:
        if device.entity.gpu_instance is None:
            return None
        key = (device.model, device.mig_profile)
        if key not in self._shares:
            board = self._table.find(device.model)
            self._shares[key] = None if board is None else mig.slice_share(board, device.mig_profile)
        return self._shares[key]

    def _find(self, device: Device) -> Peaks | None:
        key = (device.model, device.mig_profile)
        if key not in self._peaks:
            board = self._table.find(device.model)
            whole = device.entity.gpu_instance is None
            self._peaks[key] = board if whole or board is None else mig.instance(board, device.mig_profile)
        return self._peaks[key]
