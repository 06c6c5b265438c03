"""The NVLink links of a board: which are up, asked for together where the driver has the field.

nvml.h: NVML_FI_DEV_NVLINK_GET_STATE, the link in scopeId, is one of NVML_NVLINK_STATE_*. A link that the board does not
have is a wrong argument.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from exporter.model import LinkState
from exporter.sources.nvml.library import number
from exporter.sources.nvml.paced import NO_SUCH_FIELD

STATE = 165  # NVML_FI_DEV_NVLINK_GET_STATE
MOST = 18  # NVLINK_MAX_LINKS of nvml.h
_STATES = {
    0: LinkState.DOWN,  # inactive; the driver does not distinguish disabled from down
    1: LinkState.UP,
    2: LinkState.UP,  # asleep, to save power: awake when there is traffic
    3: LinkState.DISABLED,  # active, and not usable for traffic
}


class LinkReader:
    """Reads the link states of one board."""

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
