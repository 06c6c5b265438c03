"""MIG: the instances of a board, listed again at each poll. No handle outlives a poll, so instances can be destroyed.

nvml.h: handles of MIG devices may be reused, and be another device then; so each is asked for its UUID.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from exporter.sources.nvml.library import FUNCTION_NOT_FOUND, LOST, NOT_SUPPORTED, text

_PROFILE = re.compile(r"(\d+c\.)?(\d+g\.\d+gb\S*)")


@dataclass(frozen=True, slots=True)
class MigInstance:
    """One GPU instance with a MIG device in it."""

    number: int
    uuid: str
    profile: str
    handle: Any  # for the read that listed it only


class MigInstances:
    """Lists the instances of one board; caches the fixed facts of each MIG device."""

    def __init__(self, nvml: Any) -> None:
        self._nvml = nvml
        self._known: dict[str, tuple[int, str]] = {}  # MIG UUID -> (GPU instance, profile)
        self._on = False
        self._most = 0  # how many MIG devices there can be while MIG is on; 0: not asked yet

    def enabled(self, handle: Any) -> bool:
        """Whether MIG is on; the last known state if the driver does not report it. NVMLError when the GPU is lost."""
        try:
            self._on = bool(self._nvml.nvmlDeviceGetMigMode(handle)[0])
        except self._nvml.NVMLError as error:
            if error.value in LOST:
                raise
            self._on = self._on and error.value not in (NOT_SUPPORTED, FUNCTION_NOT_FOUND)
        if not self._on:
            self._most = 0
        return self._on

    def list(self, handle: Any) -> Iterator[MigInstance]:
        """Each GPU instance once, also when several compute instances share it."""
        nvml, seen = self._nvml, set[int]()
        known: dict[str, tuple[int, str]] = {}
        self._most = self._most or nvml.nvmlDeviceGetMaxMigDeviceCount(handle)
        for position in range(self._most):
            try:
                mig = nvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, position)
                uuid = text(nvml.nvmlDeviceGetUUID(mig))
                facts = self._known.get(uuid) or self._facts(mig)
            except nvml.NVMLError:
                continue  # no device at this position, or it has just been destroyed
            known[uuid] = facts
            if facts[0] not in seen:
                seen.add(facts[0])
                yield MigInstance(facts[0], uuid, facts[1], mig)
        self._known = known

    def _facts(self, mig: Any) -> tuple[int, str]:
        number = int(self._nvml.nvmlDeviceGetGpuInstanceId(mig))
        match = _PROFILE.search(text(self._nvml.nvmlDeviceGetName(mig)))
        return number, match[2] if match else ""
