"""Each device against its hardware, once a sampling window."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from exporter.hardware import mig
from exporter.hardware.peaks import Peaks, PeakTable
from exporter.hardware.saturation import Saturation, saturation
from exporter.model import Device

IDLE_ACTIVE = 0.01  # heuristic: below 1 % of any activity a window counts as idle (utilization.gpu has steps of 1 %)
WINDOW = 3  # heuristic: the median of three readings in a row, so that one bad reading is not learnt


class IdleFloor:
    """The power that one board draws when idle, in watts: the lowest seen; None until the board has been idle once.

    A board that never rests has no floor and hence no power ratio: a guess from its lowest load would call any
    steady load idle.
    """

    def __init__(self) -> None:
        self._recent: list[float] = []
        self.watts: float | None = None

    def feed(self, power: float | None, active: float | None) -> float | None:
        """One window: mean or instant ``power`` in watts, and the highest of busy, engine and SM activity (0..1).

        Returns the floor. A missing value teaches nothing, and 0 W is a reading that failed: no board draws nothing.
        """
        if power is None or active is None or power <= 0.0 or active > IDLE_ACTIVE:
            self._recent = []
            return self.watts
        self._recent = [*self._recent, power][-WINDOW:]
        if len(self._recent) == WINDOW:
            median = sorted(self._recent)[WINDOW // 2]
            self.watts = median if self.watts is None else min(self.watts, median)
        return self.watts


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
