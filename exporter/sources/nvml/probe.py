"""A look at the driver: which GPUs there are, and which of them it can measure."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Any

from exporter.model import SourceError
from exporter.sources.nvml.gpm import supported
from exporter.sources.nvml.library import load, open_library, text


@dataclass(frozen=True, slots=True)
class Found:
    """One GPU. ``problem``: why it cannot be read; empty when it can."""

    index: int
    uuid: str = ""
    model: str = ""
    gpm: bool = False
    mig: bool = False
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Probe:
    """The driver and its GPUs."""

    driver_version: str
    gpus: tuple[Found, ...]


def probe(nvml: Any = None) -> Probe:
    """Opens and closes the library. SourceError when there is no driver or no GPU."""
    nvml = load() if nvml is None else nvml
    open_library(nvml)
    try:
        driver = text(nvml.nvmlSystemGetDriverVersion())
        gpus = tuple(_look(nvml, index) for index in range(nvml.nvmlDeviceGetCount()))
    except nvml.NVMLError as error:
        raise SourceError(f"the NVIDIA driver does not list its GPUs: {error}", "nvidia-smi; dmesg") from error
    finally:
        with contextlib.suppress(nvml.NVMLError):
            nvml.nvmlShutdown()
    if not gpus:
        raise SourceError("the NVIDIA driver lists no GPU", "in a container: NVIDIA_VISIBLE_DEVICES=all")
    return Probe(driver, gpus)


def _look(nvml: Any, index: int) -> Found:
    try:
        handle = nvml.nvmlDeviceGetHandleByIndex(index)
        uuid, model = text(nvml.nvmlDeviceGetUUID(handle)), text(nvml.nvmlDeviceGetName(handle))
    except nvml.NVMLError as error:
        return Found(index, problem=str(error))
    try:
        mig = bool(nvml.nvmlDeviceGetMigMode(handle)[0])
    except nvml.NVMLError:
        mig = False
    return Found(index, uuid, model, supported(nvml, handle), mig)
