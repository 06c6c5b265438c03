"""Meeting the player through NVIDIA's own Python binding, in a process of its own."""

import dataclasses
from collections.abc import Callable
from typing import Any

from ..player.meeting import result_of, run_script
from ..scenarios.models import h100_sxm
from .playing import Playing
from .scenario import Gpu, Scenario

PRELUDE = """
import pynvml as n
errors = n.NVMLError
player = ctypes.CDLL("libnvidia-ml.so.1")
player.honest_test_calls.restype = player.honest_test_sizeof.restype = ctypes.c_ulong

def gpm(sample1, sample2, *metrics):
    request = n.c_nvmlGpmMetricsGet_t()
    request.version = n.NVML_GPM_METRICS_GET_VERSION
    request.numMetrics = len(metrics)
    request.sample1, request.sample2 = sample1, sample2
    for i, metric in enumerate(metrics):
        request.metrics[i].metricId = metric
    n.nvmlGpmMetricsGet(request)
    return [(request.metrics[i].nvmlReturn, request.metrics[i].value) for i in range(len(metrics))]

def sample_of(device, at, instance=None):
    set_clock(at)
    sample = n.nvmlGpmSampleAlloc()
    if instance is None:
        return n.nvmlGpmSampleGet(device, sample)
    return n.nvmlGpmMigSampleGet(device, instance, sample)

n.nvmlInit()
"""

Run = Callable[[Scenario, str], object]
"""The fixture ``run``: what the script leaves in ``result``, under a scenario whose clock stands at 0."""


def one(gpu: Gpu, **others: Any) -> Scenario:
    """A scenario of one GPU."""
    return dataclasses.replace(Scenario((gpu,)), **others)


def h100(**others: Any) -> Gpu:
    return dataclasses.replace(h100_sxm(), **others)


def run_python(playing: Playing, script: str) -> object:
    """The value of ``result`` at the end of a script that meets the player through NVIDIA's binding."""
    return result_of(run_script(playing, PRELUDE, script))
