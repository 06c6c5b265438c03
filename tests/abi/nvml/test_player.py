"""The player itself behind NVIDIA's own Python binding: its interface, its accounting, its time."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ..scenarios.models import GPM_IDLE
from ..scenarios.nodes import (
    h100_mig_node,
    h100_node,
    mixed_node,
)
from .build import player_library
from .codes import Code
from .meeting import Run, h100, one, run_python
from .playing import play
from .scenario import Counter

# ---- the binary interface ----


def test_structures_are_as_large_as_nvidias_binding_has_them(run: Run) -> None:
    result = run(
        h100_node(1),
        """
        theirs = {
            "nvmlPciInfo_t": "nvmlPciInfo_t", "nvmlUtilization_t": "c_nvmlUtilization_t",
            "nvmlMemory_t": "c_nvmlMemory_t", "nvmlMemory_v2_t": "c_nvmlMemory_v2_t",
            "nvmlBAR1Memory_t": "c_nvmlBAR1Memory_t", "nvmlProcessInfo_t": "c_nvmlProcessInfo_v3_t",
            "nvmlDeviceAttributes_t": "c_nvmlDeviceAttributes",
            "nvmlRowRemapperHistogramValues_t": "c_nvmlRowRemapperHistogramValues",
            "nvmlValue_t": "c_nvmlValue_t", "nvmlSample_t": "c_nvmlSample_t",
            "nvmlFieldValue_t": "c_nvmlFieldValue_t",
            "nvmlProcessUtilizationSample_t": "c_nvmlProcessUtilizationSample_t",
            "nvmlProcessUtilizationInfo_v1_t": "c_nvmlProcessUtilizationInfo_v1_t",
            "nvmlProcessesUtilizationInfo_v1_t": "c_nvmlProcessesUtilizationInfo_v1_t",
            "nvmlEventData_t": "c_nvmlEventData_t", "nvmlTemperature_v1_t": "c_nvmlTemperature_v1_t",
            "nvmlViolationTime_t": "c_nvmlViolationTime_t", "nvmlGpuInstanceInfo_t": "c_nvmlGpuInstanceInfo_t",
            "nvmlComputeInstanceInfo_t": "c_nvmlComputeInstanceInfo_t",
            "nvmlGpuInstanceProfileInfo_t": "c_nvmlGpuInstanceProfileInfo_t",
            "nvmlGpuInstanceProfileInfo_v2_t": "c_nvmlGpuInstanceProfileInfo_v2_t",
            "nvmlGpmMetric_t": "c_nvmlGpmMetric_t", "nvmlGpmMetricsGet_t": "c_nvmlGpmMetricsGet_t",
            "nvmlGpmSupport_t": "c_nvmlGpmSupport_t",
        }
        if n.NVML_GPM_METRIC_MAX != 477:
            del theirs["nvmlGpmMetricsGet_t"]  # its array grows from version to version
        result = {name: (player.honest_test_sizeof(name.encode()), ctypes.sizeof(getattr(n, kind)))
                  for name, kind in theirs.items() if hasattr(n, kind)}
        """,
    )
    assert isinstance(result, dict)
    assert len(result) >= 18
    assert {name: ours for name, (ours, theirs) in result.items() if ours != theirs} == {}
    assert result.get("nvmlGpmMetricsGet_t", [19104, 19104]) == [19104, 19104]


def test_a_missing_symbol_is_function_not_found(tmp_path: Path) -> None:
    library = player_library(frozenset({"nvmlGpmQueryDeviceSupport", "nvmlDeviceGetSerial"}))
    result = run_python(
        play(h100_node(1), library, tmp_path / "play"),
        """
        device = n.nvmlDeviceGetHandleByIndex(0)
        result = [code(n.nvmlGpmQueryDeviceSupport, device), code(n.nvmlDeviceGetSerial, device),
                  n.nvmlDeviceGetTemperature(device, 0)]
        """,
    )
    assert result == [Code.FUNCTION_NOT_FOUND, Code.FUNCTION_NOT_FOUND, 29]


def test_wrong_handles_and_versions_are_refused(run: Run) -> None:
    result = run(
        h100_mig_node(),
        """
        device = n.nvmlDeviceGetHandleByIndex(0)
        mig = n.nvmlDeviceGetMigDeviceHandleByIndex(device, 0)
        nonsense = ctypes.cast(ctypes.c_void_p(0x1234), n.c_nvmlDevice_t)
        memory = n.c_nvmlMemory_v2_t()
        result = [
            code(n.nvmlDeviceGetName, nonsense),
            code(n.nvmlDeviceGetPowerUsage, mig),
            code(n.nvmlGpmSampleFree, ctypes.cast(ctypes.c_void_p(0x1234), n.c_nvmlGpmSample_t)),
            code(n.nvmlDeviceGetHandleByIndex, 1),
            code(n.nvmlDeviceGetHandleByUUID, b"GPU-none"),
            n.nvmlLib.nvmlDeviceGetMemoryInfo_v2(device, ctypes.byref(memory)),
            code(n.nvmlDeviceGetMigDeviceHandleByIndex, device, 4),
        ]
        n.nvmlShutdown()
        result.append(code(n.nvmlDeviceGetName, device))
        result.append(code(n.nvmlShutdown))
        """,
    )
    assert result == [2, 2, 2, 2, Code.NOT_FOUND, Code.ARGUMENT_VERSION_MISMATCH, Code.NOT_FOUND, 1, 1]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "a scenario without a driver"),
        ("something else\n", "line 1 (something): else"),
        ("nonsense\n", "line 1 (nonsense): no such keyword"),
        ("value key=power_mw kind=steps points=0:1\n", "belongs to nothing"),
        ("instance key=a id=1\n", "belongs to no GPU"),
        ("gpu key=a\ncompute id=1\n", "line 2 (compute): belongs to no instance"),
        ("gpu key=a\ngpu key=a\n", "two GPUs of one key"),
        ("gpu key=a\nprocess pid=1.5\n", "not a whole number"),
        ("gpu key=a\nvalue key=power_mw kind=steps points=0:1,0:2\n", "points must go forward in time"),
        ("gpu key=a\nvalue key=power_mw kind=steps points=0:x\n", "not a number: x"),
        ("gpu key=a\nvalue key=power_mw kind=steps points=0\n", "a point is TIME:VALUE"),
        ("gpu key=a\nvalue key=power_mw kind=steps points=nan:1\n", "not a time"),
        ("gpu key=a\nvalue key=power_mw kind=steps points=\n", "no points"),
        ("gpu key=a\nvalue key=power_mw kind=ramp points=0:1\n", "no such kind of value"),
        ("gpu key=a\nvalue key=name kind=text text=%4\n", "a bad percent-encoding"),
        ("call_fault function=x gpu=b kind=0 argument=3 limit=0 from=0 until=1\n", "no such GPU"),
        ("call_fault kind=0\n", "function is missing"),
    ],
)
def test_a_scenario_that_cannot_be_read_ends_the_process(
    player: Path, tmp_path: Path, text: str, complaint: str
) -> None:
    playing = play(h100_node(1), player, tmp_path)
    playing.scenario_path.write_text(text)
    done = subprocess.run(
        [sys.executable, "-c", "import pynvml; pynvml.nvmlInit()"],
        env=playing.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert "NVML player: " in done.stderr
    assert complaint in done.stderr
    assert done.returncode == -signal.SIGABRT


# ---- accounting and time ----


def test_what_is_held_can_be_read_from_outside(player: Path, tmp_path: Path) -> None:
    playing = play(h100_mig_node(), player, tmp_path)
    assert playing.report().total_calls == 0
    result = run_python(
        playing,
        """
        device = n.nvmlDeviceGetHandleByIndex(0)
        kept = [sample_of(device, 0.0), sample_of(device, 0.0, 2)]
        n.nvmlGpmSampleFree(sample_of(device, 0.0, 2))
        events = n.nvmlEventSetCreate()
        result = [player.honest_test_open_samples(), player.honest_test_calls(b"nvmlGpmSampleAlloc")]
        """,
    )
    report = playing.report()
    assert result == [2, 3]
    assert (report.open_samples, report.open_mig_samples, report.open_event_sets, report.init_count) == (2, 1, 1, 1)
    assert report.called("nvmlGpmSampleFree") == 1
    assert report.called("nvmlGpmMigSampleGet") == 2
    assert report.total_calls == sum(report.calls.values())


def test_real_time_without_a_clock(player: Path, tmp_path: Path) -> None:
    scenario = one(h100(gpm={**GPM_IDLE, 2: 42.0}), wall_offset=None)
    result = run_python(
        play(scenario, player, tmp_path, real_time=True),
        """
        device = n.nvmlDeviceGetHandleByIndex(0)
        one, two = n.nvmlGpmSampleAlloc(), n.nvmlGpmSampleAlloc()
        n.nvmlGpmSampleGet(device, one)
        time.sleep(0.12)
        n.nvmlGpmSampleGet(device, two)
        stamp = n.nvmlDeviceGetFieldValues(device, [83])[0].timestamp / 1e6
        result = [gpm(one, two, 2), abs(stamp - time.time()) < 5]
        """,
    )
    assert result == [[[0, 42.0]], True]


def test_a_counter_starts_again_after_a_reset(run: Run) -> None:
    gpu = h100(energy_mj=Counter(100.0, start=1000.0, resets=(10.0,)))
    result = run(
        one(gpu),
        """
        device = n.nvmlDeviceGetHandleByIndex(0)
        result = []
        for at in (0.0, 9.0, 10.0, 11.5):
            set_clock(at)
            result.append(n.nvmlDeviceGetTotalEnergyConsumption(device))
        """,
    )
    assert result == [1000, 1900, 0, 150]


def test_a_mixed_node(run: Run) -> None:
    result = run(
        mixed_node(),
        """
        devices = [n.nvmlDeviceGetHandleByIndex(i) for i in range(n.nvmlDeviceGetCount())]
        result = [[n.nvmlGpmQueryDeviceSupport(d).isSupportedDevice for d in devices],
                  len({n.nvmlDeviceGetUUID(d) for d in devices}),
                  [n.nvmlDeviceGetMaxMigDeviceCount(d) for d in devices]]
        """,
    )
    assert result == [[1, 1, 0, 0, 0], 5, [0, 7, 0, 0, 0]]
