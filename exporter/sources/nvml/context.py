"""The context of a board: power, energy, temperatures, clocks, memory, links, errors. Units of nvml.h to base units."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from exporter.fields import CLOCK_EVENTS
from exporter.model import Absence, Entity, LinkState, Reading
from exporter.sources.nvml.library import LOST, absence

FAST_SECONDS = 0.85  # sampling faster than this asks for the context, and delivers it, no more often
SLOW_SECONDS = 10.0  # what hardly changes is asked for this often, and delivered with the rest
MEMORY_TEMPERATURE = 82  # NVML_FI_DEV_MEMORY_TEMP
LINKS = 18  # NVLINK_MAX_LINKS of nvml.h

Read = Callable[[Any, Any], float]


def _power_limit(nvml: Any, handle: Any) -> float:
    return float(nvml.nvmlDeviceGetEnforcedPowerLimit(handle)) / 1e3


def _memory_temperature(nvml: Any, handle: Any) -> float:
    (value,) = nvml.nvmlDeviceGetFieldValues(handle, [MEMORY_TEMPERATURE])
    if value.nvmlReturn != 0:
        raise nvml.NVMLError(value.nvmlReturn)
    celsius = float(value.value.uiVal)
    if celsius == 0.0:  # boards without the sensor say 0
        raise nvml.NVMLError(nvml.NVML_ERROR_NOT_SUPPORTED)
    return celsius


def link_states(nvml: Any, handle: Any) -> dict[int, LinkState]:
    """Of the NVLink links, by number; empty without NVLink. The driver does not tell disabled from down."""
    states = {}
    for link in range(LINKS):
        try:
            states[link] = LinkState.UP if nvml.nvmlDeviceGetNvLinkState(handle, link) == 1 else LinkState.DOWN
        except nvml.NVMLError as error:
            if error.value not in (nvml.NVML_ERROR_INVALID_ARGUMENT, nvml.NVML_ERROR_NOT_SUPPORTED):
                raise
            break
    return states


def _ecc(kind: int) -> Read:
    return lambda nvml, handle: float(nvml.nvmlDeviceGetTotalEccErrors(handle, kind, 1))  # 1: aggregate


def _remapped(position: int) -> Read:
    return lambda nvml, handle: float(nvml.nvmlDeviceGetRemappedRows(handle)[position])


def _retired(nvml: Any, handle: Any) -> float:
    return float(sum(len(nvml.nvmlDeviceGetRetiredPages(handle, cause)) for cause in (0, 1)))


FAST: Mapping[str, Read] = {
    "power": lambda nvml, handle: nvml.nvmlDeviceGetPowerUsage(handle) / 1e3,
    "energy": lambda nvml, handle: nvml.nvmlDeviceGetTotalEnergyConsumption(handle) / 1e3,
    "temperature": lambda nvml, handle: float(nvml.nvmlDeviceGetTemperature(handle, 0)),
    "memory_temperature": _memory_temperature,
    "sm_clock": lambda nvml, handle: nvml.nvmlDeviceGetClockInfo(handle, 1) * 1e6,
    "memory_clock": lambda nvml, handle: nvml.nvmlDeviceGetClockInfo(handle, 2) * 1e6,
}
SLOW: Mapping[str, Read] = {
    "power_limit": _power_limit,
    "pcie_link_generation": lambda nvml, handle: float(nvml.nvmlDeviceGetCurrPcieLinkGeneration(handle)),
    "pcie_link_generation_max": lambda nvml, handle: float(nvml.nvmlDeviceGetMaxPcieLinkGeneration(handle)),
    "pcie_link_width": lambda nvml, handle: float(nvml.nvmlDeviceGetCurrPcieLinkWidth(handle)),
    "pcie_link_width_max": lambda nvml, handle: float(nvml.nvmlDeviceGetMaxPcieLinkWidth(handle)),
    "pcie_replay": lambda nvml, handle: float(nvml.nvmlDeviceGetPcieReplayCounter(handle)),
    "ecc_corrected": _ecc(0),
    "ecc_uncorrected": _ecc(1),
    "remapped_rows_corrected": _remapped(0),
    "remapped_rows_uncorrected": _remapped(1),
    "remap_failed": _remapped(3),
    "retired_pages": _retired,
}
MEMORY = ("memory_total", "memory_used", "memory_free", "memory_reserved")
FIELDS = frozenset({*FAST, *SLOW, *MEMORY, "clock_event", "nvlink_links_up"})


class Context:
    """Of one board. What the driver does not support is not asked for again."""

    def __init__(self, nvml: Any, entity: Entity) -> None:
        self._nvml, self._entity = nvml, entity
        self._unsupported: set[str] = set()
        self._slow: list[Reading] = []
        self.links: Mapping[int, LinkState] = {}  # by number, as of the last look at what hardly changes
        self._fast_at = self._slow_at = float("-inf")

    def read(self, handle: Any, now: float) -> Iterator[Reading]:
        """All readings when they are due, each with the moment it was read at. NVMLError when the GPU is lost."""
        if now - self._fast_at < FAST_SECONDS:
            return
        fast = list(self._ask(handle, now))
        self._fast_at = now
        if now - self._slow_at >= SLOW_SECONDS:
            self._slow = [self._one(handle, now, field, read) for field, read in SLOW.items()]
            self._slow.append(self._one(handle, now, "nvlink_links_up", self._links_up))
            self._slow_at = now
        yield from fast
        yield from self._slow

    def _ask(self, handle: Any, now: float) -> Iterator[Reading]:
        for field, read in FAST.items():
            yield self._one(handle, now, field, read)
        yield from memory(self._nvml, handle, self._entity, now)
        yield from self._clock_events(handle, now)

    def _one(self, handle: Any, now: float, field: str, read: Read) -> Reading:
        if field in self._unsupported:
            return Reading(self._entity, field, now, None, None, Absence.NOT_SUPPORTED)
        try:
            return Reading(self._entity, field, now, read(self._nvml, handle))
        except self._nvml.NVMLError as error:
            if error.value in LOST:
                raise
            why = absence(error)
            if why is Absence.NOT_SUPPORTED:
                self._unsupported.add(field)
            return Reading(self._entity, field, now, None, None, why)

    def _links_up(self, nvml: Any, handle: Any) -> float:
        self.links = {}
        self.links = link_states(nvml, handle)
        if not self.links:
            raise nvml.NVMLError(nvml.NVML_ERROR_NOT_SUPPORTED)
        return float(sum(state is LinkState.UP for state in self.links.values()))

    def _clock_events(self, handle: Any, now: float) -> Iterator[Reading]:
        try:
            ask = getattr(self._nvml, "nvmlDeviceGetCurrentClocksEventReasons", None)
            bits = (ask or self._nvml.nvmlDeviceGetCurrentClocksThrottleReasons)(handle)
        except self._nvml.NVMLError as error:
            yield Reading(self._entity, "clock_event", now, None, None, absence(error))
            return
        for bit, label in CLOCK_EVENTS.items():
            yield Reading(self._entity, "clock_event", now, float(bool(bits & bit)), None, None, label)


def memory(nvml: Any, handle: Any, entity: Entity, now: float) -> Iterator[Reading]:
    """Bytes, of a board or of a MIG device. The driver's first interface counts what is reserved as used."""
    try:
        found = nvml.nvmlDeviceGetMemoryInfo(handle, nvml.nvmlMemory_v2)
        yield Reading(entity, "memory_reserved", now, float(found.reserved))
    except (nvml.NVMLError, AttributeError):
        try:
            found = nvml.nvmlDeviceGetMemoryInfo(handle)
        except nvml.NVMLError as error:
            for field in MEMORY:
                yield Reading(entity, field, now, None, None, absence(error))
            return
        yield Reading(entity, "memory_reserved", now, None, None, Absence.NOT_SUPPORTED)
    for field in ("total", "used", "free"):
        yield Reading(entity, f"memory_{field}", now, float(getattr(found, field)))
