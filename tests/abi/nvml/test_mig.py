"""MIG of the player: devices, instances, reconfiguration."""

from dataclasses import replace

from ..scenarios.nodes import (
    a100_mig_node,
    h100_56_instances,
    h100_mig_node,
)
from .codes import Code
from .meeting import Run
from .scenario import MIB, Layout, Process, steps


def test_mig_devices(run: Run) -> None:
    node = h100_mig_node()
    process = Process(21, "job", memory=77, instance=3, compute=0)
    result = run(
        replace(node, gpus=(replace(node.gpus[0], processes=(process,)),)),
        """
        device = n.nvmlDeviceGetHandleByIndex(0)
        def describe(index):
            mig = n.nvmlDeviceGetMigDeviceHandleByIndex(device, index)
            attributes = n.nvmlDeviceGetAttributes(mig)
            parent = n.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(mig)
            return [n.nvmlDeviceGetName(mig), n.nvmlDeviceGetGpuInstanceId(mig), n.nvmlDeviceGetComputeInstanceId(mig),
                    n.nvmlDeviceGetIndex(mig), attributes.multiprocessorCount, attributes.gpuInstanceSliceCount,
                    attributes.memorySizeMB, n.nvmlDeviceGetMemoryInfo(mig).used,
                    n.nvmlDeviceGetUUID(parent) == n.nvmlDeviceGetUUID(device),
                    n.nvmlDeviceIsMigDeviceHandle(mig).value, len(n.nvmlDeviceGetComputeRunningProcesses(mig)),
                    n.nvmlDeviceGetUUID(n.nvmlDeviceGetHandleByUUID(n.nvmlDeviceGetUUID(mig).encode()))
                    == n.nvmlDeviceGetUUID(mig)]
        whole = n.nvmlDeviceGetComputeRunningProcesses(device)[0]
        result = [n.nvmlDeviceGetMigMode(device), n.nvmlDeviceGetMaxMigDeviceCount(device), describe(0), describe(1),
                  code(n.nvmlDeviceGetMigDeviceHandleByIndex, device, 5),
                  code(n.nvmlDeviceGetUtilizationRates, device), code(n.nvmlDeviceGetSamples, device, 1, 0),
                  code(n.nvmlDeviceGetNvLinkState, device, 0), code(n.nvmlDeviceGetAttributes, device),
                  whole.gpuInstanceId, n.nvmlDeviceIsMigDeviceHandle(device).value]
        """,
    )
    name = "NVIDIA H100 80GB HBM3 MIG"
    assert result == [
        [1, 1],
        7,
        [f"{name} 3g.40gb", 2, 0, 0, 60, 3, 40448, 26 * MIB, True, 1, 0, True],
        [f"{name} 2g.20gb", 3, 0, 1, 32, 2, 20096, 17 * MIB, True, 1, 1, True],
        *(Code.NOT_FOUND, 3, 3, 3, 3, 3, 0),
    ]


def test_gpu_instances_and_profiles(run: Run) -> None:
    result = run(
        h100_mig_node(),
        """
        device = n.nvmlDeviceGetHandleByIndex(0)
        profile = n.nvmlDeviceGetGpuInstanceProfileInfo(device, n.NVML_GPU_INSTANCE_PROFILE_1_SLICE)
        short = n.nvmlDeviceGetGpuInstanceProfileInfo(device, n.NVML_GPU_INSTANCE_PROFILE_1_SLICE, 1)
        found = (n.c_nvmlGpuInstance_t * profile.instanceCount)()
        count = ctypes.c_uint()
        n.nvmlDeviceGetGpuInstances(device, profile.id, found, ctypes.byref(count))
        infos = [n.nvmlGpuInstanceGetInfo(found[i]) for i in range(count.value)]
        instance = n.nvmlDeviceGetGpuInstanceById(device, 3)
        info = n.nvmlGpuInstanceGetInfo(instance)
        compute = n.nvmlGpuInstanceGetComputeInstanceById(instance, 0)
        compute_info = n.nvmlComputeInstanceGetInfo_v2(compute)
        result = [profile.id, profile.name, profile.multiprocessorCount, profile.memorySizeMB, short.instanceCount,
                  [(i.id, i.profileId, i.placement.start, i.placement.size) for i in infos],
                  info.id, info.placement.start, compute_info.id, compute_info.placement.size,
                  code(n.nvmlDeviceGetGpuInstanceById, device, 5),
                  code(n.nvmlDeviceGetGpuInstanceProfileInfo, device, 12)]
        """,
    )
    assert result == [19, "1g.10gb", 16, 9984, 7, [[9, 19, 6, 1], [10, 19, 7, 1]], 3, 4, 0, 2, 6, 3]


def test_gpm_of_instances(run: Run) -> None:
    node = h100_mig_node()
    board = node.gpus[0]
    assert board.mig is not None
    parts = tuple(
        replace(part, gpm={**part.gpm, 2: steps((0, 0), (1, 10.0 * part.id))}) for part in board.mig.instances
    )
    result = run(
        replace(node, gpus=(replace(board, mig=replace(board.mig, instances=parts)),)),
        """
        device = n.nvmlDeviceGetHandleByIndex(0)
        mig = n.nvmlDeviceGetMigDeviceHandleByIndex(device, 1)
        result = [
            gpm(sample_of(device, 0.0, 2), sample_of(device, 2.0, 2), 2, 20),
            gpm(sample_of(mig, 0.0), sample_of(device, 2.0, 3), 2),
            code(gpm, sample_of(device, 0.0, 2), sample_of(device, 1.0, 3), 2),
            code(sample_of, device, 0.0, 4),
            [player.honest_test_open_samples(), player.honest_test_open_mig_samples(),
             player.honest_test_samples_on(n.nvmlDeviceGetUUID(device).encode(), 2)],
        ]
        """,
    )
    assert result == [[[0, 10.0], [3, 0.0]], [[0, 15.0]], 2, 2, [7, 6, 3]]


def test_reconfiguration_makes_handles_stale(run: Run) -> None:
    node = h100_mig_node()
    board = node.gpus[0]
    assert board.mig is not None
    layouts = (Layout(0, ("gi2", "gi3")), Layout(10, ("gi9", "gi10")), Layout(20, enabled=False))
    result = run(
        replace(node, gpus=(replace(board, mig=replace(board.mig, layouts=layouts)),)),
        """
        device = n.nvmlDeviceGetHandleByIndex(0)
        def ids():
            found = []
            for index in range(n.nvmlDeviceGetMaxMigDeviceCount(device)):
                try:
                    found.append(n.nvmlDeviceGetGpuInstanceId(n.nvmlDeviceGetMigDeviceHandleByIndex(device, index)))
                except n.NVMLError_NotFound:
                    pass
            return found
        old, before = n.nvmlDeviceGetMigDeviceHandleByIndex(device, 0), ids()
        set_clock(10.0)
        after, stale = ids(), code(n.nvmlDeviceGetMemoryInfo, old)
        set_clock(20.0)
        result = [before, after, stale, n.nvmlDeviceGetMigMode(device), ids(),
                  code(n.nvmlDeviceGetUtilizationRates, device)]
        """,
    )
    assert result == [[2, 3], [9, 10], 2, [0, 0], [], 0]


def test_an_instance_with_open_samples_cannot_be_destroyed(run: Run) -> None:
    result = run(
        h100_mig_node(),
        """
        device = n.nvmlDeviceGetHandleByIndex(0)
        instance = n.nvmlDeviceGetGpuInstanceById(device, 9)
        sample = sample_of(device, 0.0, 9)
        tries = [code(n.nvmlGpuInstanceDestroy, instance)]
        n.nvmlComputeInstanceDestroy(n.nvmlGpuInstanceGetComputeInstanceById(instance, 0))
        hole = [code(n.nvmlDeviceGetMigDeviceHandleByIndex, device, i) for i in range(4)]
        tries.append(code(n.nvmlGpuInstanceDestroy, instance))
        n.nvmlGpmSampleFree(sample)
        tries.append(code(n.nvmlGpuInstanceDestroy, instance))
        tries.append(code(n.nvmlDeviceGetGpuInstanceById, device, 9))
        result = [tries, hole]
        """,
    )
    assert result == [[Code.IN_USE, Code.IN_USE, 0, Code.NOT_FOUND], [0, 0, Code.NOT_FOUND, 0]]


def test_an_a100_has_instances_without_any_measurement(run: Run) -> None:
    result = run(
        a100_mig_node(),
        """
        device = n.nvmlDeviceGetHandleByIndex(0)
        result = [[n.nvmlDeviceGetGpuInstanceId(n.nvmlDeviceGetMigDeviceHandleByIndex(device, i)) for i in range(4)],
                  n.nvmlGpmQueryDeviceSupport(device).isSupportedDevice, code(sample_of, device, 0.0, 3),
                  code(n.nvmlDeviceGetUtilizationRates, device), n.nvmlDeviceGetMinorNumber(device)]
        """,
    )
    assert result == [[3, 4, 5, 6], 0, 3, 3, 1]


def test_fifty_six_instances(run: Run) -> None:
    result = run(
        h100_56_instances(),
        """
        uuids = set()
        for index in range(n.nvmlDeviceGetCount()):
            device = n.nvmlDeviceGetHandleByIndex(index)
            for place in range(n.nvmlDeviceGetMaxMigDeviceCount(device)):
                uuids.add(n.nvmlDeviceGetUUID(n.nvmlDeviceGetMigDeviceHandleByIndex(device, place)))
        result = len(uuids)
        """,
    )
    assert result == 56
