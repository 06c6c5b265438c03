"""Writes a scenario as the file that the C library reads: lines.c has its form, scenario.c its words."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import quote

from .codes import Blank, EntityKind
from .offers import Gpm, MetricGroup, NoProfiling, Profiling, gpm_groups
from .scenario import ComputeInstance, Gpu, GpuInstance, Links, Scenario
from .values import Counter, Events, Fields, Steps, Value, Window

Word = str | float | None


def _text(value: str | float) -> str:
    if isinstance(value, str):
        return quote(value, safe=":/.,-+()@<>;")
    return str(int(value)) if isinstance(value, int) else repr(float(value))


def _line(keyword: str, **words: Word) -> str:
    """Words that are None are left out."""
    return " ".join([keyword, *(f"{key}={_text(value)}" for key, value in words.items() if value is not None)])


def _window(keyword: str, window: Window, **words: Word) -> str:
    return _line(keyword, **words, **{"from": window.start, "until": window.end})


def _windows(keyword: str, windows: Sequence[Window], **words: Word) -> Iterator[str]:
    for window in windows:
        yield _window(keyword, window, **words)


def _list(items: Sequence[float]) -> str:
    return ",".join(_text(item) for item in items)


# ---- values ----


def _points(value: float | Blank | Steps) -> str:
    points = value.points if isinstance(value, Steps) else ((0.0, value),)
    return ",".join(
        f"{_text(time)}:blank{int(item)}" if isinstance(item, Blank) else f"{_text(time)}:{_text(item)}"
        for time, item in points
    )


def _value(entity: EntityKind, entity_id: int, number: int, value: Value) -> str:
    words: dict[str, Word] = {"eg": entity, "eid": entity_id, "field": number}
    if isinstance(value, str):
        return _line("value", **words, kind="text", text=value)
    if isinstance(value, Events):
        events = ",".join(f"{_text(time)}:{_text(item)}" for time, item in value.points)
        return _line("value", **words, kind="events", points=events)
    if isinstance(value, Counter):
        resets = _list(value.resets)
        return _line("value", **words, kind="counter", start=value.start, resets=resets, points=_points(value.rate))
    return _line("value", **words, kind="steps", points=_points(value))


def _values(entity: EntityKind, entity_id: int, fields: Fields) -> Iterator[str]:
    for number, value in fields.items():
        yield _value(entity, entity_id, number, value)


def _links(entity: EntityKind, entity_id: int, links: Sequence[Links]) -> Iterator[str]:
    for item in links:
        words: dict[str, Word] = {"eg": entity, "eid": entity_id, "from": item.start}
        yield _line("links", **words, states=_list(item.states))


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
    return _line(
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
    yield _line("thing", eg=EntityKind.GPU_INSTANCE, **of_gpu, **_instance_words(gpu, instance, None))
    yield from _windows("present", instance.present, eg=EntityKind.GPU_INSTANCE, eid=instance.id)
    yield from _values(EntityKind.GPU_INSTANCE, instance.id, instance.fields)
    for compute in instance.computes:
        of_instance: dict[str, Word] = {"parent_eg": EntityKind.GPU_INSTANCE, "parent_eid": instance.id}
        words = _instance_words(gpu, instance, compute)
        yield _line("thing", eg=EntityKind.COMPUTE_INSTANCE, **of_instance, **words)
        yield from _windows("present", compute.present, eg=EntityKind.COMPUTE_INSTANCE, eid=compute.id)
        yield from _values(EntityKind.COMPUTE_INSTANCE, compute.id, compute.fields)


def _gpu(scenario: Scenario, gpu: Gpu) -> Iterator[str]:
    profiling, groups = _profiling(gpu.profiling, scenario.version)
    yield _gpu_line(scenario, gpu, profiling)
    for group in groups:
        words: dict[str, Word] = {"major": group.major, "minor": group.minor, "withheld": int(group.withheld)}
        yield _line("group", gpu=gpu.id, **words, fields=_list(group.fields))
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
        yield _line("thing", eg=EntityKind.SWITCH, eid=switch.id)
        yield from _windows("present", switch.present, eg=EntityKind.SWITCH, eid=switch.id)
        yield from _links(EntityKind.SWITCH, switch.id, switch.links)
        yield from _values(EntityKind.SWITCH, switch.id, switch.fields)
    for link in scenario.links:
        gpu = link.owner_id if link.owner == EntityKind.GPU else None
        yield _line("thing", eg=EntityKind.LINK, eid=link.id, gpu=gpu)
        yield from _values(EntityKind.LINK, link.id, link.fields)
    for cpu in scenario.cpus:
        yield _line("thing", eg=EntityKind.CPU, eid=cpu.id)
        yield from _values(EntityKind.CPU, cpu.id, cpu.fields)


# ---- the hostengine and what goes wrong ----


def _build_info(version: tuple[int, int, int]) -> str:
    number = ".".join(str(part) for part in version)
    return f"version:{number};arch:x86_64;buildtype:Release;buildid:0;builddate:2026-01-01;commit:0;branch:test"


def _engine(scenario: Scenario) -> Iterator[str]:
    yield _line(
        "engine",
        version=".".join(str(part) for part in scenario.version),
        build_info=_build_info(scenario.version),
        address=scenario.address or "",
        wall_offset="real" if scenario.wall_offset is None else scenario.wall_offset,
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
        yield _window("lock", lock.window, code=lock.code)


def _or_any(number: int | None) -> int:
    return -1 if number is None else number


def _faults(scenario: Scenario) -> Iterator[str]:
    for call in scenario.call_faults:
        words: dict[str, Word] = {"function": quote(call.function, safe="*?[]"), "kind": call.kind, "limit": call.limit}
        yield _window("call_fault", call.window, **words, argument=call.argument, gpu=_or_any(call.gpu))
    for fault in scenario.value_faults:
        kind, number = (-1, -1) if fault.entity is None else fault.entity
        yield _window(
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


def write_scenario(scenario: Scenario, path: Path) -> Path:
    path.write_text("".join(f"{line}\n" for line in scenario_lines(scenario)), encoding="ascii")
    return path
