"""The context of a board: power, energy, temperatures, clocks, memory, links, errors. Units of nvml.h to base units.

Field ids are used where nvml.h says that they are what the function says.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from exporter.fields import CLOCK_EVENTS
from exporter.model import Absence, Entity, LinkState, Reading
from exporter.sources.nvml.library import LOST, absence, number
from exporter.sources.nvml.paced import NO_SUCH_FIELD, Ask, Paced, Value

TEMPERATURE_SECONDS = 5.0
SLOW_SECONDS = 10.0  # what hardly changes is asked for this often, and delivered with the rest


def _remapped(position: int) -> Ask:
    return lambda nvml, handle: float(nvml.nvmlDeviceGetRemappedRows(handle)[position])


def _ecc(kind: int) -> Ask:
    return lambda nvml, handle: float(nvml.nvmlDeviceGetTotalEccErrors(handle, kind, 1))  # 1: aggregate


def _retired(nvml: Any, handle: Any) -> float:
    return float(sum(len(nvml.nvmlDeviceGetRetiredPages(handle, cause)) for cause in (0, 1)))


FAST: Mapping[str, Value] = {
    # NVML_FI_DEV_POWER_AVERAGE, over 1 s; boards without it (GA100 and older) have an instant in the function alone
    "power": Value((185,), 1e3, lambda nvml, handle: nvml.nvmlDeviceGetPowerUsage(handle) / 1e3),
    "energy": Value((83,), 1e3, lambda nvml, handle: nvml.nvmlDeviceGetTotalEnergyConsumption(handle) / 1e3),
    "memory_temperature": Value((82,)),
    "sm_clock": Value(ask=lambda nvml, handle: nvml.nvmlDeviceGetClockInfo(handle, 1) * 1e6),
    "memory_clock": Value(ask=lambda nvml, handle: nvml.nvmlDeviceGetClockInfo(handle, 2) * 1e6),
}
TEMPERATURE: Mapping[str, Value] = {
    "temperature": Value(ask=lambda nvml, handle: float(nvml.nvmlDeviceGetTemperature(handle, 0))),
}
SLOW: Mapping[str, Value] = {
    # NVML_FI_DEV_POWER_CURRENT_LIMIT: the one that is enforced
    "power_limit": Value((190,), 1e3, lambda nvml, handle: nvml.nvmlDeviceGetEnforcedPowerLimit(handle) / 1e3),
    "pcie_replay": Value((94,), ask=lambda nvml, handle: float(nvml.nvmlDeviceGetPcieReplayCounter(handle))),
    "ecc_corrected": Value((5,), ask=_ecc(0)),
    "ecc_uncorrected": Value((6,), ask=_ecc(1)),
    "remapped_rows_corrected": Value((142,), ask=_remapped(0)),
    "remapped_rows_uncorrected": Value((143,), ask=_remapped(1)),
    "remap_failed": Value((145,), ask=_remapped(3)),
    "retired_pages": Value((29, 30), ask=_retired),
    "pcie_link_generation": Value(ask=lambda nvml, handle: float(nvml.nvmlDeviceGetCurrPcieLinkGeneration(handle))),
    "pcie_link_generation_max": Value(ask=lambda nvml, handle: float(nvml.nvmlDeviceGetMaxPcieLinkGeneration(handle))),
    "pcie_link_width": Value(ask=lambda nvml, handle: float(nvml.nvmlDeviceGetCurrPcieLinkWidth(handle))),
    "pcie_link_width_max": Value(ask=lambda nvml, handle: float(nvml.nvmlDeviceGetMaxPcieLinkWidth(handle))),
}
MEMORY = ("memory_total", "memory_used", "memory_free", "memory_reserved")
FIELDS = frozenset({*FAST, *TEMPERATURE, *SLOW, *MEMORY, "clock_event", "nvlink_links_up"})


class Context:
    """Of one board. What the driver does not support is not asked for again."""

    def __init__(self, nvml: Any, entity: Entity) -> None:
        self._nvml, self._entity = nvml, entity
        self._paced = [
            Paced(nvml, entity, FAST, 0.0),
            Paced(nvml, entity, TEMPERATURE, TEMPERATURE_SECONDS),
            Paced(nvml, entity, {**SLOW, "nvlink_links_up": Value(ask=self._links_up)}, SLOW_SECONDS),
        ]
        self._ask_links = LinkReader(nvml)
        self.links: Mapping[int, LinkState] = {}  # by number, as of the last slow read

    def read(self, handle: Any, now: float) -> Iterator[Reading]:
        """All readings, each with the moment it was read at. NVMLError when the GPU is lost."""
        for paced in self._paced:
            yield from paced.read(handle, now)
        yield from memory(self._nvml, handle, self._entity, now)
        yield from self._clock_events(handle, now)

    def _links_up(self, nvml: Any, handle: Any) -> float:
        self.links = {}
        self.links = self._ask_links.states(handle)
        if not self.links:
            raise nvml.NVMLError(nvml.NVML_ERROR_NOT_SUPPORTED)
        return float(sum(state is LinkState.UP for state in self.links.values()))

    def _clock_events(self, handle: Any, now: float) -> Iterator[Reading]:
        try:
            ask = getattr(self._nvml, "nvmlDeviceGetCurrentClocksEventReasons", None)
            bits = (ask or self._nvml.nvmlDeviceGetCurrentClocksThrottleReasons)(handle)
        except self._nvml.NVMLError as error:
            if error.value in LOST:
                raise
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


STATE = 165  # NVML_FI_DEV_NVLINK_GET_STATE
MOST = 18  # NVLINK_MAX_LINKS of nvml.h
_STATES = {
    0: LinkState.DOWN,  # inactive; the driver does not distinguish disabled from down
    1: LinkState.UP,
    2: LinkState.UP,  # asleep, to save power: awake when there is traffic
    3: LinkState.DISABLED,  # active, and not usable for traffic
}


class LinkReader:
    """Reads the NVLink states of one board: in one request where the driver has the field.

    nvml.h: NVML_FI_DEV_NVLINK_GET_STATE, the link in scopeId, is one of NVML_NVLINK_STATE_*. For a link that the board
    does not have, the driver returns an invalid argument.
    """

    def __init__(self, nvml: Any) -> None:
        self._nvml = nvml
        self._together = True

    def states(self, handle: Any) -> Mapping[int, LinkState]:
        """By number; empty without NVLink. NVMLError when they cannot be read."""
        if self._together:
            states = self._at_once(handle)
            if states:
                return states
        states = self._one_by_one(handle)
        self._together = self._together and not states  # without NVLink both are empty
        return states

    def _at_once(self, handle: Any) -> dict[int, LinkState]:
        nvml = self._nvml
        try:
            values = nvml.nvmlDeviceGetFieldValues(handle, [(STATE, link) for link in range(MOST)])
        except nvml.NVMLError as error:
            if error.value in NO_SUCH_FIELD:
                return {}
            raise
        states = {}
        for link, value in enumerate(values):
            code = int(value.nvmlReturn)
            if code == 0:
                states[link] = _STATES.get(int(number(value.value, value.valueType)), LinkState.DOWN)
            elif code not in NO_SUCH_FIELD:
                raise nvml.NVMLError(code)
        return states

    def _one_by_one(self, handle: Any) -> dict[int, LinkState]:
        nvml, states = self._nvml, {}
        for link in range(MOST):
            try:
                states[link] = LinkState.UP if nvml.nvmlDeviceGetNvLinkState(handle, link) == 1 else LinkState.DOWN
            except nvml.NVMLError as error:
                if error.value not in (nvml.NVML_ERROR_INVALID_ARGUMENT, nvml.NVML_ERROR_NOT_SUPPORTED):
                    raise
                break
        return states
