"""GPM of the player: exact means between two samples, and its edges."""

import math

import pytest

from ..scenarios.nodes import (
    h100_node,
)
from ..scenarios.workloads import GEMM, running
from .codes import Code
from .happenings import failing
from .meeting import Run, h100, one
from .scenario import Counter, Gpm, steps


def test_gpm_integrates_exactly(run: Run) -> None:
    measured = {
        1: steps((0, 10), (2, 40), (3, 100)),
        2: 98.5,
        5: steps((0, 0), (2.5, 50)),
        20: steps((0, 1024), (3, 0)),
        248: Counter(1000.0, start=5.0),
        10: steps((0, 1), (3.5, Code.NO_PERMISSION)),
        12: math.nan,
    }
    result = run(
        one(h100(gpm=measured)),
        """
        device = n.nvmlDeviceGetHandleByIndex(0)
        one, two = sample_of(device, 1.0), sample_of(device, 4.0)
        three = sample_of(device, 3.25)
        result = [gpm(one, two, 1, 2, 5, 20, 248, 10, 60), gpm(one, three, 10),
                  str(gpm(one, two, 12)[0][1]), code(gpm, two, one, 1)]
        """,
    )
    assert isinstance(result, list)
    whole, part, not_a_number, backwards = result
    assert [returned for returned, _ in whole] == [0, 0, 0, 0, 0, Code.NO_PERMISSION, Code.NOT_SUPPORTED]
    expected = [(10 + 40 + 100) / 3, 98.5, 1.5 * 50 / 3, 2 * 1024 / 3, 5 + 4000]
    assert [value for _, value in whole[:5]] == pytest.approx(expected, rel=1e-12)
    assert part == [[0, 1.0]]
    assert not_a_number == "nan"
    assert backwards == Code.INVALID_ARGUMENT


def test_gpm_at_the_edges(run: Run) -> None:
    script = """
    device = n.nvmlDeviceGetHandleByIndex(0)
    a, b, c = sample_of(device, 1.0), sample_of(device, 1.05), sample_of(device, 2.0)
    empty = n.nvmlGpmSampleAlloc()
    result = [gpm(a, b, 1)[0], gpm(b, c, 1)[0], gpm(a, c, 1)[0], code(gpm, a, empty, 1)]
    """
    gpu = h100(gpm={1: 50.0})
    empty = Code.INVALID_ARGUMENT
    assert run(one(gpu), script) == [[Code.NO_DATA, 0.0], [0, 50.0], [0, 50.0], empty]
    loose = Gpm(interval_min=0.0, first=Code.NOT_READY)
    assert run(one(gpu, gpm=loose), script) == [[27, 0.0], [0, 50.0], [27, 0.0], empty]
    zero = Gpm(short=None, first=0.0)
    assert run(one(gpu, gpm=zero), script) == [[0, 0.0], [0, 50.0], [0, 0.0], empty]


def test_gpm_errors_of_single_metrics_and_of_the_call(run: Run) -> None:
    faults = (
        failing("gpm.5", Code.NOT_SUPPORTED),
        failing("nvmlGpmMetricsGet", Code.UNKNOWN, gpu="gpu0", start=5),
        failing("nvmlGpmSampleGet", Code.NO_PERMISSION, gpu="gpu0", start=6),
    )
    result = run(
        one(running(h100(), GEMM), faults=faults),
        """
        device = n.nvmlDeviceGetHandleByIndex(0)
        one, two = sample_of(device, 1.0), sample_of(device, 2.0)
        good = gpm(one, two, 5, 2)
        set_clock(5.0)
        late = code(gpm, one, two, 2)
        set_clock(6.0)
        result = [good, late, code(n.nvmlGpmSampleGet, device, one)]
        """,
    )
    assert result == [[[3, 0.0], [0, 98.0]], Code.UNKNOWN, Code.NO_PERMISSION]


def test_gpm_streaming(run: Run) -> None:
    result = run(
        h100_node(1),
        """
        device = n.nvmlDeviceGetHandleByIndex(0)
        before = n.nvmlGpmQueryIfStreamingEnabled(device)
        n.nvmlGpmSetStreamingEnabled(device, 1)
        result = [before, n.nvmlGpmQueryIfStreamingEnabled(device)]
        """,
    )
    assert result == [0, 1]
