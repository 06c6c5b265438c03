"""What a GPU of the player says of itself and of its work."""

from dataclasses import replace

from ..scenarios.models import h100_sxm
from ..scenarios.nodes import (
    geforce_node,
    h100_node,
    p100_node,
    t4_node,
)
from .codes import Code
from .happenings import failing
from .meeting import Run, h100, one
from .scenario import ALL_LINKS, MIB, NOT_AVAILABLE, Counter, NvLink, Process, RetiredPages, steps

# ---- what a GPU says ----


def test_identity(run: Run) -> None:
    result = run(
        h100_node(),
        """
        device = n.nvmlDeviceGetHandleByIndex(3)
        pci = n.nvmlDeviceGetPciInfo(device)
        result = [
            n.nvmlSystemGetDriverVersion(), n.nvmlSystemGetNVMLVersion(), n.nvmlSystemGetCudaDriverVersion(),
            n.nvmlSystemGetCudaDriverVersion_v2(), n.nvmlDeviceGetCount(), n.nvmlDeviceGetName(device),
            n.nvmlDeviceGetUUID(device), n.nvmlDeviceGetIndex(device), n.nvmlDeviceGetMinorNumber(device),
            pci.busId, pci.busIdLegacy, pci.domain, pci.bus, pci.device, pci.pciDeviceId,
            n.nvmlDeviceGetSerial(device), n.nvmlDeviceGetBrand(device), n.nvmlDeviceGetArchitecture(device),
            n.nvmlDeviceGetCudaComputeCapability(device), n.nvmlDeviceGetNumGpuCores(device),
            n.nvmlDeviceGetVbiosVersion(device), n.nvmlDeviceGetPersistenceMode(device),
            n.nvmlDeviceGetComputeMode(device),
            n.nvmlDeviceGetName(n.nvmlDeviceGetHandleByPciBusId(b"0000:97:00.0")),
            n.nvmlDeviceGetIndex(n.nvmlDeviceGetHandleByPciBusId(b"0000:97:00.0")),
            n.nvmlDeviceGetIndex(n.nvmlDeviceGetHandleByUUID(n.nvmlDeviceGetUUID(device).encode())),
        ]
        """,
    )
    uuid = "GPU-00001003-0e57-4c0d-9a5e-000000001003"
    assert result == [
        *("580.105.08", "13.580.105.08", 13000, 13000, 8, "NVIDIA H100 80GB HBM3", uuid, 3, 3),
        *("00000000:86:00.0", "0000:86:00.0", 0, 0x86, 0, 0x233010DE, "1600000001003", 14, 9, [9, 0], 16896),
        *("96.00.99.00.01", 1, 0, "NVIDIA H100 80GB HBM3", 4, 3),
    ]


def test_power_temperature_clocks_and_memory(run: Run) -> None:
    gpu = h100(power=replace(h100_sxm().power, draw_mw=steps((0, 100_000), (10, 400_000)), enforced_mw=650_000))
    result = run(
        one(replace(gpu, clock_reasons=float(0x4), violations_ns={0: Counter(1e9)}, fan_speed=42)),
        """
        device = n.nvmlDeviceGetHandleByIndex(0)
        start = n.nvmlDeviceGetTotalEnergyConsumption(device)
        set_clock(12.0)
        memory, memory2 = n.nvmlDeviceGetMemoryInfo(device), n.nvmlDeviceGetMemoryInfo(device, n.nvmlMemory_v2)
        bar1 = n.nvmlDeviceGetBAR1MemoryInfo(device)
        result = [
            n.nvmlDeviceGetPowerUsage(device), n.nvmlDeviceGetEnforcedPowerLimit(device),
            n.nvmlDeviceGetPowerManagementLimit(device), n.nvmlDeviceGetPowerManagementDefaultLimit(device),
            n.nvmlDeviceGetPowerManagementLimitConstraints(device),
            n.nvmlDeviceGetTotalEnergyConsumption(device) - start,
            n.nvmlDeviceGetTemperature(device, 0),
            getattr(n, "nvmlDeviceGetTemperatureV", n.nvmlDeviceGetTemperature)(device, 0),
            [n.nvmlDeviceGetClockInfo(device, i) for i in range(4)],
            [n.nvmlDeviceGetMaxClockInfo(device, i) for i in range(4)],
            n.nvmlDeviceGetCurrentClocksEventReasons(device), n.nvmlDeviceGetCurrentClocksThrottleReasons(device),
            n.nvmlDeviceGetPerformanceState(device), n.nvmlDeviceGetViolationStatus(device, 0).violationTime,
            memory.total, memory.used, memory.free, memory2.used, memory2.reserved, memory2.free,
            bar1.bar1Total, bar1.bar1Free, n.nvmlDeviceGetFanSpeed(device),
        ]
        """,
    )
    total, reserved = 81559 * MIB, 480 * MIB
    assert result == [
        *(400_000, 650_000, 700_000, 700_000, [200_000, 700_000], 10 * 100_000 + 2 * 400_000, 29, 29),
        *([345, 345, 2619, 765], [1980, 1980, 2619, 1545], 4, 4, 0, 12_000_000_000),
        *(total, reserved, total - reserved, 0, reserved, total - reserved, 131072 * MIB, 131071 * MIB, 42),
    ]


def test_links(run: Run) -> None:
    nvlink = NvLink(
        3,
        version=4,
        states={1: steps((0, 1), (5, 0)), 2: Code.GPU_IS_LOST},
        remotes=("00000000:05:00.0",),
        errors={(1, 0): 7},
    )
    gpu = h100(nvlink=nvlink, pcie=replace(h100_sxm().pcie, generation=1, width=8))  # type: ignore[type-var]
    result = run(
        one(gpu),
        """
        device = n.nvmlDeviceGetHandleByIndex(0)
        set_clock(6.0)
        result = [
            n.nvmlDeviceGetCurrPcieLinkGeneration(device), n.nvmlDeviceGetMaxPcieLinkGeneration(device),
            n.nvmlDeviceGetGpuMaxPcieLinkGeneration(device), n.nvmlDeviceGetCurrPcieLinkWidth(device),
            n.nvmlDeviceGetMaxPcieLinkWidth(device), n.nvmlDeviceGetPcieThroughput(device, 0),
            n.nvmlDeviceGetPcieThroughput(device, 1), n.nvmlDeviceGetPcieReplayCounter(device),
            n.nvmlDeviceGetNvLinkState(device, 0), n.nvmlDeviceGetNvLinkState(device, 1),
            code(n.nvmlDeviceGetNvLinkState, device, 2), code(n.nvmlDeviceGetNvLinkState, device, 3),
            n.nvmlDeviceGetNvLinkVersion(device, 0), n.nvmlDeviceGetNvLinkRemotePciInfo(device, 0).busId,
            code(n.nvmlDeviceGetNvLinkRemotePciInfo, device, 1), n.nvmlDeviceGetNvLinkErrorCounter(device, 1, 0),
            n.nvmlDeviceGetNvLinkRemoteDeviceType(device, 0),
        ]
        """,
    )
    assert result == [1, 5, 5, 8, 16, 502, 578, 150, 1, 0, 15, 2, 4, "00000000:05:00.0", 3, 7, 2]


def test_health(run: Run) -> None:
    gpu = h100(retired_pages=RetiredPages(2, 1, 1))
    result = run(
        one(gpu),
        """
        device = n.nvmlDeviceGetHandleByIndex(0)
        histogram = n.nvmlDeviceGetRowRemapperHistogram(device)
        result = [
            n.nvmlDeviceGetEccMode(device), n.nvmlDeviceGetTotalEccErrors(device, 1, 0),
            code(n.nvmlDeviceGetMemoryErrorCounter, device, 1, 0, 2),
            n.nvmlDeviceGetRemappedRows(device), histogram.max, histogram.none,
            n.nvmlDeviceGetRetiredPages(device, 0), len(n.nvmlDeviceGetRetiredPages_v2(device, 1)),
            n.nvmlDeviceGetRetiredPagesPendingStatus(device),
        ]
        """,
    )
    assert result == [[1, 1], 0, 3, [0, 0, 0, 0], 2560, 0, [0x10000, 0x11000], 1, 1]


def test_field_values_have_return_codes_and_types_of_their_own(run: Run) -> None:
    gpu = h100(
        memory_temperature=steps((0, 40), (5, Code.TIMEOUT)),
        fields={
            (138, ALL_LINKS): Counter(1024.0),
            (138, 3): Counter(1.0, start=9.0),
            269: Counter(5e8),
            94: 77,
            33: NOT_AVAILABLE,
        },
    )
    result = run(
        one(gpu, faults=(failing("field.186", Code.NO_PERMISSION),), wall_offset=1000.0),
        """
        device = n.nvmlDeviceGetHandleByIndex(0)
        def read(*ids):
            return [(v.nvmlReturn, v.valueType, v.value.uiVal if v.valueType == 1 else v.value.ullVal, v.timestamp)
                    for v in n.nvmlDeviceGetFieldValues(device, list(ids))]
        early = read(82)
        set_clock(8.0)
        result = early + read(82, (138, 0xFFFFFFFF), (138, 3), 139, 269, 94, 91, 186, 185, 33)
        """,
    )
    stamp = 1_008_000_000
    assert result == [
        [0, 1, 40, 1_000_000_000],
        [Code.TIMEOUT, 0, 0, stamp],
        [0, 3, 8192, stamp],
        [0, 3, 17, stamp],
        [Code.NOT_SUPPORTED, 0, 0, stamp],
        [0, 3, 4_000_000_000, stamp],
        [0, 1, 77, stamp],
        [0, 1, 18, stamp],
        [Code.NO_PERMISSION, 0, 0, stamp],
        [0, 1, 68_570, stamp],
        [0, 3, 2**64 - 1, stamp],
    ]


def test_models_answer_not_supported_where_the_board_does(run: Run) -> None:
    script = """
    device = n.nvmlDeviceGetHandleByIndex(0)
    support = n.nvmlGpmQueryDeviceSupport(device).isSupportedDevice
    sample = n.nvmlGpmSampleAlloc()
    fields = n.nvmlDeviceGetFieldValues(device, [82, 185])
    result = [support, code(n.nvmlGpmSampleGet, device, sample), code(n.nvmlDeviceGetTotalEnergyConsumption, device),
              code(n.nvmlDeviceGetSerial, device), code(n.nvmlDeviceGetEccMode, device),
              code(n.nvmlDeviceGetNvLinkState, device, 0), code(n.nvmlDeviceGetMigMode, device),
              fields[0].nvmlReturn, fields[1].nvmlReturn]
    """
    assert run(h100_node(1), script) == [1, 0, 0, 0, 0, 0, 0, 0, 0]
    assert run(t4_node(), script) == [0, 3, 0, 0, 0, 3, 3, 3, 3]
    assert run(p100_node(), script) == [0, 3, 3, 0, 0, 3, 3, 3, 3]
    assert run(geforce_node(), script) == [0, 3, 0, 3, 3, 3, 3, 3, 0]


# ---- the claim ----


def test_the_claim_is_the_mean_of_the_drivers_window(run: Run) -> None:
    gpu = h100(utilization=steps((0, 0), (1.25, 100), (1.75, 0)), memory_utilization=7)
    result = run(
        one(gpu, sample_period=0.5, sample_ring=3, wall_offset=10.0),
        """
        device = n.nvmlDeviceGetHandleByIndex(0)
        def now(at):
            set_clock(at)
            rates = n.nvmlDeviceGetUtilizationRates(device)
            return rates.gpu, rates.memory
        claims = [now(t) for t in (0.2, 1.3, 1.5, 1.7, 2.0)]
        def samples(since, kind=n.NVML_GPU_UTILIZATION_SAMPLES):
            value_type, found = n.nvmlDeviceGetSamples(device, kind, since)
            return [value_type] + [(s.timeStamp, s.sampleValue.uiVal) for s in found]
        result = [claims, samples(0), samples(11_500_000), samples(0, n.NVML_TOTAL_POWER_SAMPLES),
                  code(n.nvmlDeviceGetSamples, device, 1, 12_000_000),
                  code(n.nvmlDeviceGetSamples, device, 9, 0)]
        """,
    )
    assert result == [
        [[0, 7], [0, 7], [50, 7], [50, 7], [50, 7]],
        [1, [11_000_000, 0], [11_500_000, 50], [12_000_000, 50]],
        [1, [12_000_000, 50]],
        [1, [11_000_000, 68_570], [11_500_000, 68_570], [12_000_000, 68_570]],
        Code.NOT_FOUND,
        Code.NOT_SUPPORTED,
    ]


def test_a_claim_out_of_range_passes(run: Run) -> None:
    gpu = h100(utilization=steps((0, 50), (1, 1980), (1.5, 50)))
    result = run(
        one(gpu, sample_period=0.5),
        "set_clock(1.6); result = n.nvmlDeviceGetUtilizationRates(n.nvmlDeviceGetHandleByIndex(0)).gpu",
    )
    assert result == 1980


def test_processes(run: Run) -> None:
    gpu = h100(
        processes=(
            Process(11, "/usr/bin/python3 train.py", memory=512 * MIB, sm_utilization=80, memory_utilization=20),
            Process(12, "late", memory=1, alive=steps((0, 0), (5, 1))),
            Process(13, "x", kind="graphics"),
            Process(14, "mps", kind="mps", memory=5, sm_utilization=1),
        )
    )
    result = run(
        one(gpu, sample_period=1.0, wall_offset=0.0),
        """
        device = n.nvmlDeviceGetHandleByIndex(0)
        def listed(function):
            return [(p.pid, p.usedGpuMemory, p.gpuInstanceId) for p in function(device)]
        early = listed(n.nvmlDeviceGetComputeRunningProcesses)
        set_clock(6.0)
        result = [
            early, listed(n.nvmlDeviceGetComputeRunningProcesses), listed(n.nvmlDeviceGetGraphicsRunningProcesses),
            listed(n.nvmlDeviceGetMPSComputeRunningProcesses), n.nvmlSystemGetProcessName(11),
            code(n.nvmlSystemGetProcessName, 99),
            [(s.pid, s.timeStamp, s.smUtil, s.memUtil) for s in n.nvmlDeviceGetProcessUtilization(device, 0)],
            code(n.nvmlDeviceGetProcessUtilization, device, 6_000_000),
            [(s.pid, s.smUtil) for s in getattr(
                n, "nvmlDeviceGetProcessesUtilizationInfo", n.nvmlDeviceGetProcessUtilization)(device, 0)],
        ]
        """,
    )
    none = 0xFFFFFFFF
    assert result == [
        [[11, 512 * MIB, none]],
        [[11, 512 * MIB, none], [12, 1, none]],
        [[13, None, none]],
        [[14, 5, none]],
        "/usr/bin/python3 train.py",
        Code.NOT_FOUND,
        [[11, 6_000_000, 80, 20], [14, 6_000_000, 1, 0]],
        Code.NOT_FOUND,
        [[11, 80], [14, 1]],
    ]
