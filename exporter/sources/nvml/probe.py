"""Asks the driver once: which GPUs there are, and which of them it can measure."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass
from typing import Any

from exporter.background.lane import Lane
from exporter.model import SourceError
from exporter.sources.nvml import problems, support
from exporter.sources.nvml.library import load, open_library, text

DEADLINE = (
    10.0  # seconds for all GPUs together; without persistence mode the first access to each takes a second or two
)


@dataclass(frozen=True, slots=True)
class ProbedGpu:
    """One GPU. ``problem``: why it cannot be read; empty when it can."""

    index: int
    uuid: str = ""
    model: str = ""
    gpm: bool = False
    mig: bool = False
    problem: str = ""
    without_gpm: str = ""  # why it has no GPM
    remedy: str = ""  # of the problem, or of the missing GPM


@dataclass(frozen=True, slots=True)
class Probe:
    """The driver and its GPUs."""

    driver_version: str
    gpus: tuple[ProbedGpu, ...]


def probe(nvml: Any = None, *, deadline: float = DEADLINE) -> Probe:
    """Opens and closes the library. SourceError when there is no driver or no GPU. A GPU that hangs is a problem of
    that GPU; the library is then left open."""
    nvml = load() if nvml is None else nvml
    open_library(nvml)
    lanes: list[Lane[ProbedGpu]] = []
    try:
        driver = text(nvml.nvmlSystemGetDriverVersion())
        lanes += (Lane(f"probe-{index}") for index in range(nvml.nvmlDeviceGetCount()))
        for index, lane in enumerate(lanes):
            lane.start(lambda index=index: _probe_gpu(nvml, index))  # type: ignore[misc]
        until = time.monotonic() + deadline
        gpus = tuple(_found(index, lane, until, deadline) for index, lane in enumerate(lanes))
    except nvml.NVMLError as error:
        raise SourceError(f"the NVIDIA driver does not list its GPUs: {error}", "nvidia-smi; dmesg") from error
    finally:
        free = not [lane for lane in lanes if lane.busy]
        for lane in lanes:
            lane.stop()
        if free:
            with contextlib.suppress(nvml.NVMLError):
                nvml.nvmlShutdown()
    if not gpus:
        raise SourceError("the NVIDIA driver lists no GPU", "in a container: NVIDIA_VISIBLE_DEVICES=all")
    return Probe(driver, gpus)


def _found(index: int, lane: Lane[ProbedGpu], until: float, deadline: float) -> ProbedGpu:
    if lane.done(max(0.0, until - time.monotonic())):
        return lane.take()
    hung = problems.hung(index, "", deadline)
    return ProbedGpu(index, problem=hung.why, remedy=hung.remedy)


def _probe_gpu(nvml: Any, index: int) -> ProbedGpu:
    uuid = ""
    try:
        handle = nvml.nvmlDeviceGetHandleByIndex(index)
        uuid = text(nvml.nvmlDeviceGetUUID(handle))
        model = text(nvml.nvmlDeviceGetName(handle))
        gpm = support.ask(nvml, handle)
    except nvml.NVMLError as error:
        problem = problems.unreadable(index, uuid, error)
        return ProbedGpu(index, uuid, problem=problem.why, remedy=problem.remedy)
    try:
        mig = bool(nvml.nvmlDeviceGetMigMode(handle)[0])
    except nvml.NVMLError:
        mig = False
    return ProbedGpu(index, uuid, model, gpm.absence is None, mig, without_gpm=gpm.why, remedy=gpm.remedy)
