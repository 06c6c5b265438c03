"""The player seen through NVIDIA's bindings: the binary interface, entities, limits, accounting."""

import dataclasses

import pytest

from .build import SONAME, player_library
from .codes import Code, EntityKind, LinkState
from .conftest import Start
from .meeting import Run, run_python
from .offers import Module, NoProfiling
from .samples import a100, h100, mig_instances, one
from .scenario import Cpu, Gpu, Link, Links, Scenario, Switch
from .values import Window


def test_struct_versions_of_the_bindings_are_those_of_the_interface(run: Run) -> None:
    script = """
        result = [hex(number) for number in (
            s.c_dcgmConnectV2Params_version2, s.c_dcgmMigHierarchy_version2, s.dcgmFieldGroupInfo_version1,
            s.dcgmDeviceAttributes_version3, s.dcgmFieldValue_version1, s.dcgmFieldValue_version2,
            s.dcgmProfGetMetricGroups_version3, s.dcgmModuleGetStatuses_version1, s.dcgmVersionInfo_version2,
            s.dcgmHostengineHealth_version1)]
    """
    assert run(one(h100()), script) == [
        *("0x2000010", "0x2011f08", "0x1000210", "0x3001464", "0x1001018", "0x2001020"),
        *("0x3000560", "0x1000088", "0x2000204", "0x1000008"),
    ]


def test_uninitialized_library(run: Run) -> None:
    script = """
        h = connect()
        a.dcgmShutdown()
        uninitialized = code(a.dcgmGetAllDevices, h)
        a.dcgmInit()
        result = [uninitialized, code(a.dcgmGetAllDevices, h), a.dcgmGetAllDevices(connect())]
    """
    assert run(one(h100()), script) == [Code.UNINITIALIZED, Code.CONNECTION_NOT_VALID, [0]]


def test_lists_attributes_version_and_health(run: Run) -> None:
    script = """
        h = connect()
        d = a.dcgmGetDeviceAttributes(h, 1)
        result = [a.dcgmGetAllDevices(h), a.dcgmGetAllSupportedDevices(h), list(a.dcgmGetEntityGroupEntities(h, 1, 0)),
                  d.identifiers.deviceName, d.identifiers.uuid, d.identifiers.pciBusId, d.identifiers.driverVersion,
                  d.identifiers.serial, d.memoryUsage.fbTotal, d.powerLimits.maxPowerLimit, d.settings.migModeEnabled,
                  d.thermalSettings.slowdownTemp, a.dcgmVersionInfo().rawBuildInfoString.split(";")[0],
                  a.dcgmHostengineIsHealthy(h).overallHealth, code(a.dcgmGetDeviceAttributes, h, 7)]
    """
    old = h100(2, supported=False, profiling=NoProfiling())
    assert run(Scenario((h100(0), h100(1), old)), script) == [
        *([0, 1, 2], [0, 1], [0, 1, 2], "NVIDIA H100 80GB HBM3", "GPU-00000000-0000-0000-0000-000000000001"),
        *("00000000:02:00.0", "580.105.08", "<<<NULL>>>", 81559, 700, 0, 0x7FFFFFF0, "version:4.6.0", 0),
        Code.BADPARAM,
    ]


def test_embedded_and_remote_side_by_side(run: Run) -> None:
    script = """
        e = a.dcgmStartEmbedded(s.DCGM_OPERATION_MODE_AUTO)
        again = a.dcgmStartEmbedded(s.DCGM_OPERATION_MODE_AUTO)
        h = connect()
        a.dcgmFieldGroupCreate(e, [203], "same")
        a.dcgmFieldGroupCreate(h, [203], "same")
        result = [e.value, again.value, a.dcgmGetAllDevices(e), player.honest_test_open_handles()]
        a.dcgmStopEmbedded(e)
        result += [code(a.dcgmGetAllDevices, e), player.honest_test_open_field_groups()]
    """
    assert run(one(h100()), script) == [0x7FFFFFFF, None, [0], 2, Code.UNINITIALIZED, 1]


def test_mig_hierarchy_follows_the_layout(run: Run) -> None:
    script = """
        h = connect()
        def look():
            tree = a.dcgmGetGpuInstanceHierarchy(h)
            return [[e.entity.entityGroupId, e.entity.entityId, e.parent.entityGroupId, e.parent.entityId,
                     e.info.nvmlGpuIndex, e.info.nvmlInstanceId, e.info.nvmlComputeInstanceId,
                     e.info.nvmlMigProfileId, e.info.nvmlProfileSlices]
                    for e in tree.entityList[:tree.count]]
        first = look()
        mode = a.dcgmGetDeviceAttributes(h, 0).settings.migModeEnabled
        set_clock(100)
        result = [first, mode, look(), a.dcgmGetDeviceAttributes(h, 0).settings.migModeEnabled,
                  list(a.dcgmGetEntityGroupEntities(h, GI, 0))]
    """
    instances = mig_instances()
    on = (Window(end=50.0),)
    gone = tuple(dataclasses.replace(instance, present=on) for instance in instances)
    assert run(one(h100(instances=gone, mig=on)), script) == [
        [
            [4, 0, 1, 0, 0, 1, 0, 14, 3],
            [5, 0, 4, 0, 0, 1, 0, 30, 3],
            [4, 1, 1, 0, 0, 2, 0, 5, 4],
            [5, 1, 4, 1, 0, 2, 0, 30, 4],
        ],
        *(1, [], 0, []),
    ]


def test_without_nvml_there_is_no_hierarchy(run: Run) -> None:
    script = "result = code(a.dcgmGetGpuInstanceHierarchy, connect())"
    assert run(Scenario(nvml=False), script) == Code.NVML_NOT_LOADED


def test_other_entities(run: Run) -> None:
    script = """
        h = connect()
        result = [list(a.dcgmGetEntityGroupEntities(h, SWITCH, 0)), code(a.dcgmGetEntityGroupEntities, h, 6, 0),
                  code(a.dcgmGetEntityGroupEntities, h, 7, 0)]
        group, fields = watched(h, [(6, 0x02000300 | 1), (SWITCH, 3)], [1532, 701, 780], name="others")
        set_clock(1)
        result += [row[:4] for row in since(h, group, fields)[0][:1]]
    """
    scenario = Scenario(
        gpus=(h100(2),),
        switches=(Switch(3, {701: 5.0}),),
        links=(Link(EntityKind.GPU, 2, 3, {1532: 1e9}),),
    )
    assert run(scenario, script) == [[3], Code.NOT_SUPPORTED, Code.MODULE_NOT_LOADED, [6, 0x02000301, 1532, 0]]
    script = "result = list(a.dcgmGetEntityGroupEntities(connect(), 7, 0))"
    assert run(Scenario(cpus=(Cpu(0), Cpu(1)), cpu_code=None), script) == [0, 1]


def test_link_states_in_the_layout_of_the_release(run: Run) -> None:
    """Each release of the bindings knows one version of the struct; the library takes those of its own time."""
    script = """
        h = connect()
        def look():
            status = a.dcgmGetNvLinkLinkStatus(h)
            return [status.numGpus, list(status.gpus[0].linkState)[:3], status.numNvSwitches,
                    status.nvSwitches[0].entityId, list(status.nvSwitches[0].linkState)[:2]]
        result = code(look)
        if result == 0:
            first = look()
            set_clock(5)
            result = [first, look()[1]]
    """
    up, down = LinkState.UP, LinkState.DOWN
    links = (Links((up, up)), Links((up, down), start=5.0))
    states = [[1, [3, 3, 0], 1, 9, [3, 0]], [3, 2, 0]]
    seen = []
    for version in ((4, 6, 0), (4, 5, 3), (3, 3, 9)):
        gpu = h100(links=links, fields={})
        switches = (Switch(9, links=(Links((up,)),)),)
        seen.append(run(Scenario((gpu,), switches, version=version), script))
    assert states in seen
    assert all(look in (states, Code.VER_MISMATCH) for look in seen)


def test_limits(run: Run) -> None:
    script = """
        h = connect()
        groups = 0
        while (groups_code := code(a.dcgmGroupCreate, h, s.DCGM_GROUP_EMPTY, "again")) == 0:
            groups += 1
        fields = 0
        while (fields_code := code(a.dcgmFieldGroupCreate, h, [203], str(fields))) == 0:
            fields += 1
        result = [groups, groups_code, fields, fields_code]
        n = connect()
        a.dcgmDisconnect(h)
        result += [code(a.dcgmFieldGroupCreate, n, [203] * 128, "long"),
                   code(a.dcgmFieldGroupCreate, n, [203] * 129, "longer"),
                   code(a.dcgmFieldGroupCreate, n, [203], "long"), code(a.dcgmFieldGroupCreate, n, [9999], "unknown"),
                   code(a.dcgmGroupAddEntity, n, group_of(n, (1, 0)), 1, 0), code(group_of, n, (1, 5)),
                   code(a.dcgmGroupDestroy, n, 99), code(a.dcgmFieldGroupDestroy, n, 99)]
    """
    assert run(one(h100()), script) == [
        *(59, Code.MAX_LIMIT, 64, Code.MAX_LIMIT, 0, Code.BADPARAM, Code.DUPLICATE_KEY, Code.BADPARAM),
        *(Code.BADPARAM, Code.BADPARAM, Code.NOT_CONFIGURED, Code.NO_DATA),
    ]


def test_group_info_of_another_release_is_refused(run: Run) -> None:
    script = """
        h = connect()
        group = group_of(h, (1, 0), name="name")
        try:
            info = a.dcgmGroupGetInfo(h, group)
            result = [info.groupName, info.count, info.entityList[0].entityGroupId]
        except s.DCGMError as error:
            result = error.value
    """
    answers = [run(one(h100(fields={}), version=version), script) for version in ((4, 6, 0), (3, 3, 9))]
    assert sorted(answers, key=str) == sorted(([["name", 1, 1], Code.VER_MISMATCH]), key=str)


def test_metric_groups_are_per_gpu(run: Run) -> None:
    script = """
        h = connect()
        def look(gpu):
            groups = a.dcgmProfGetSupportedMetricGroups(h, gpu)
            return [[g.majorId, g.minorId, g.numFieldIds, g.fieldIds[0]]
                    for g in groups.metricGroups[:groups.numMetricGroups]]
        result = [look(0), look(1), *(code(look, gpu) for gpu in (2, 3, 9))]
    """
    refused = Module((), refusal=Code.REQUIRES_ROOT)
    gpus: tuple[Gpu, ...] = (h100(0), a100(1), h100(2, profiling=NoProfiling()), a100(3, profiling=refused))
    assert run(Scenario(gpus), script) == [
        [[0, 0, 34, 1001], [1, 0, 46, 1040], [2, 0, 13, 1084]],
        [
            *([0, 1, 4, 1002], [0, 2, 1, 1006], [0, 3, 1, 1008]),
            *([1, 0, 1, 1005], [2, 0, 2, 1009], [3, 0, 1, 1001], [4, 0, 2, 1011]),
        ],
        *(Code.PROFILING_NOT_SUPPORTED, Code.REQUIRES_ROOT, Code.BADPARAM),
    ]
    script = "result = code(a.dcgmProfGetSupportedMetricGroups, connect(), 0)"
    gpu = h100(profiling=NoProfiling())
    assert run(one(gpu, module_loaded=False), script) == Code.MODULE_NOT_LOADED


def test_function_missing_in_the_library(start: Start) -> None:
    playing = start(one(h100()))
    library = player_library(frozenset({"dcgmConnect_v3", "dcgmProfPause"})) / SONAME
    script = f"""
        old = ctypes.CDLL({str(library)!r})
        result = [hasattr(old, name) for name in ("dcgmConnect_v2", "dcgmConnect_v3", "dcgmProfPause")]
    """
    assert run_python(playing, script) == [True, False, False]


def test_accounting_is_seen_from_outside(start: Start) -> None:
    playing = start(one(h100()))
    assert playing.report().total_calls == 0
    script = """
        h = connect()
        group, fields = watched(h, [(1, 0)], [203, 1002])
        connect()
        result = player.honest_test_calls(b"dcgmConnect_v2")
    """
    assert run_python(playing, script) == 2
    report = playing.report()
    assert report.open_handles == 2
    assert report.open_groups == report.open_field_groups == 1
    assert report.open_watches == report.kept_samples == 2
    assert report.called("dcgmWatchFields") == 1
    assert report.called("dcgmGetAllDevices") == 0


def test_nothing_stays_open_after_disconnecting(start: Start) -> None:
    playing = start(one(h100()))
    script = """
        h = connect()
        watched(h, [(1, 0)], [203, 1002])
        result = a.dcgmDisconnect(h)
    """
    assert run_python(playing, script) == 0
    report = playing.report()
    assert (report.open_handles, report.open_groups, report.open_field_groups, report.open_watches) == (0, 0, 0, 0)


@pytest.mark.parametrize("line", ["nonsense", "gpu id=1", "value eg=1 eid=0 field=1 kind=steps points=1:x"])
def test_half_a_scenario_is_no_scenario(start: Start, line: str) -> None:
    playing = start(one(h100()))
    with playing.scenario_path.open("a", encoding="ascii") as file:
        file.write(line + "\n")
    with pytest.raises(AssertionError, match="scenario"):
        run_python(playing, "result = 0")
