"""Writes a scenario as the file that the C library reads: scenario.c has its words."""

from collections.abc import Iterator, Sequence

from ..player.scenario_file import Word, fault_line, line, listed, value_line, wall_offset, window_line
from .codes import EntityKind
from .offers import Gpm, MetricGroup, NoProfiling, Profiling, gpm_groups
from .scenario import ComputeInstance, Gpu, GpuInstance, Links, Scenario
from .values import Fields, Window


def _windows(keyword: str, windows: Sequence[Window], **words: Word) -> Iterator[str]:
    for window in windows:
        yield window_line(keyword, window, **words)


def _values(entity: EntityKind, entity_id: int, fields: Fields) -> Iterator[str]:
    for number, value in fields.items():
        yield value_line(value, eg=entity, eid=entity_id, field=number)


def _links(entity: EntityKind, entity_id: int, links: Sequence[Links]) -> Iterator[str]:
    for item in links:
        words: dict[str, Word] = {"eg": entity, "eid": entity_id, "from": item.start}
        yield line("links", **words, states=listed(item.states))


# ---- GPUs ----


def _profiling(profiling: Profiling, version: tuple[int, int, int]) -> tuple[dict[str, Word], tuple[MetricGroup, ...]]:
    if isinstance(profiling, NoProfiling):
        return {"profiling": 0, "refusal": profiling.refusal}, ()
    if isinstance(profiling, Gpm):
        return {"profiling": 2}, gpm_groups(version) if profiling.groups is None else profiling.groups
    words: dict[str, Word] = {"profiling": 1, "refusal": profiling.refusal, "field_code": profiling.field}
    return words | {"combination_code": profiling.combination}, profiling.groups


def _maybe(names: Sequence[str], values: Sequence[int] | None) -> dict[str, Word]:
    return {} if values is None else dict(zip(names, values, strict=True))


def _gpu_line(scenario: Scenario, gpu: Gpu, profiling: dict[str, Word]) -> str:
    return line(
        "gpu",
        id=gpu.id,
        uuid=gpu.uuid,
        name=gpu.name,
        pci=gpu.pci_bus_id,
        brand=gpu.brand,
        serial=gpu.serial,
        vbios=gpu.vbios,
        inforom=gpu.inforom,
        driver=scenario.driver_version,
        pci_device=gpu.pci_device_id,
        pci_subsystem=gpu.pci_subsystem_id,
        supported=int(gpu.supported),
        bar1_total=gpu.bar1_mib,
        slowdown=gpu.slowdown_celsius,
        shutdown=gpu.shutdown_celsius,
        **_maybe(("fb_total", "fb_used", "fb_free"), gpu.memory_mib),
        **_maybe(("power_limit", "power_default", "power_min", "power_max"), gpu.power_watts),
        **profiling,
    )


def _instance_words(gpu: Gpu, instance: GpuInstance, compute: ComputeInstance | None) -> dict[str, Word]:
    part = instance if compute is None else compute
    return {
        "eid": part.id,
        "gpu": gpu.id,
        "gpu_uuid": gpu.uuid,
        "nvml_gpu": gpu.id if gpu.nvml_index is None else gpu.nvml_index,
        "nvml_instance": instance.nvml_id,
        "nvml_compute": 0 if compute is None else compute.nvml_id,
        "profile": part.profile,
        "slices": part.slices,
    }


def _instance(gpu: Gpu, instance: GpuInstance) -> Iterator[str]:
    of_gpu: dict[str, Word] = {"parent_eg": EntityKind.GPU, "parent_eid": gpu.id}
    yield line("thing", eg=EntityKind.GPU_INSTANCE, **of_gpu, **_instance_words(gpu, instance, None))
    yield from _windows("present", instance.present, eg=EntityKind.GPU_INSTANCE, eid=instance.id)
    yield from _values(EntityKind.GPU_INSTANCE, instance.id, instance.fields)
    for compute in instance.computes:
        of_instance: dict[str, Word] = {"parent_eg": EntityKind.GPU_INSTANCE, "parent_eid": instance.id}
        words = _instance_words(gpu, instance, compute)
        yield line("thing", eg=EntityKind.COMPUTE_INSTANCE, **of_instance, **words)
        yield from _windows("present", compute.present, eg=EntityKind.COMPUTE_INSTANCE, eid=compute.id)
        yield from _values(EntityKind.COMPUTE_INSTANCE, compute.id, compute.fields)


def _gpu(scenario: Scenario, gpu: Gpu) -> Iterator[str]:
    profiling, groups = _profiling(gpu.profiling, scenario.version)
    yield _gpu_line(scenario, gpu, profiling)
    for group in groups:
        words: dict[str, Word] = {"major": group.major, "minor": group.minor, "withheld": int(group.withheld)}
        yield line("group", gpu=gpu.id, **words, fields=listed(group.fields))
    yield from _windows("present", gpu.present, eg=EntityKind.GPU, eid=gpu.id)
    mig = gpu.mig if gpu.mig is not None else (Window(-FAR, FAR),) if gpu.instances else ()
    yield from _windows("mig", mig, gpu=gpu.id)
    yield from _links(EntityKind.GPU, gpu.id, gpu.links)
    yield from _values(EntityKind.GPU, gpu.id, gpu.fields)
    for instance in gpu.instances:
        yield from _instance(gpu, instance)


FAR = 1e12
"""Seconds: before and after everything."""


def _others(scenario: Scenario) -> Iterator[str]:
    for switch in scenario.switches:
        yield line("thing", eg=EntityKind.SWITCH, eid=switch.id)
        yield from _windows("present", switch.present, eg=EntityKind.SWITCH, eid=switch.id)
        yield from _links(EntityKind.SWITCH, switch.id, switch.links)
        yield from _values(EntityKind.SWITCH, switch.id, switch.fields)
    for link in scenario.links:
        gpu = link.owner_id if link.owner == EntityKind.GPU else None
        yield line("thing", eg=EntityKind.LINK, eid=link.id, gpu=gpu)
        yield from _values(EntityKind.LINK, link.id, link.fields)
    for cpu in scenario.cpus:
        yield line("thing", eg=EntityKind.CPU, eid=cpu.id)
        yield from _values(EntityKind.CPU, cpu.id, cpu.fields)


# ---- the hostengine and what goes wrong ----


def _build_info(version: tuple[int, int, int]) -> str:
    number = ".".join(str(part) for part in version)
    return f"version:{number};arch:x86_64;buildtype:Release;buildid:0;builddate:2026-01-01;commit:0;branch:test"


def _engine(scenario: Scenario) -> Iterator[str]:
    yield line(
        "engine",
        version=".".join(str(part) for part in scenario.version),
        build_info=_build_info(scenario.version),
        address=scenario.address or "",
        wall_offset=wall_offset(scenario.wall_offset),
        nvml=int(scenario.nvml),
        module_loaded=int(scenario.module_loaded),
        first_blank=int(scenario.first_blank),
        cpu_code=scenario.cpu_code or 0,
        request_timeout=scenario.request_timeout,
    )
    yield from _windows("gone", scenario.gone)
    yield from _windows("stopped", scenario.stopped)
    yield from _windows("paused", scenario.paused)
    for lock in scenario.locks:
        yield window_line("lock", lock.window, code=lock.code)


def _or_any(number: int | None) -> int:
    return -1 if number is None else number


def _faults(scenario: Scenario) -> Iterator[str]:
    for call in scenario.call_faults:
        yield fault_line(call)
    for fault in scenario.value_faults:
        kind, number = (-1, -1) if fault.entity is None else fault.entity
        yield window_line(
            "value_fault",
            fault.window,
            kind=fault.kind,
            argument=fault.argument,
            gpu=_or_any(fault.gpu),
            eg=kind,
            eid=number,
            first_field=fault.fields[0],
            last_field=fault.fields[1],
            cures=fault.cure,
        )


def scenario_lines(scenario: Scenario) -> Iterator[str]:
    yield from _engine(scenario)
    for gpu in scenario.gpus:
        yield from _gpu(scenario, gpu)
    yield from _others(scenario)
    yield from _faults(scenario)
