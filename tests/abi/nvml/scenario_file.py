"""Writes a scenario as the file that the C library reads: scenario.c has its words."""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping

from ..player.scenario_file import Word, fault_line, line, listed, value_line, wall_offset
from .codes import Code
from .happenings import Event
from .scenario import (
    ALL_LINKS,
    Bar1,
    Clocks,
    Counter,
    Ecc,
    FromPower,
    Gpu,
    GpuInstance,
    Memory,
    Mig,
    NvLink,
    Pcie,
    Process,
    Scenario,
    Steps,
    Value,
)


def _series(key: str, value: Value | None) -> Iterator[str]:
    if value is not None:
        yield value_line(value, key=key)


def _many(prefix: str, values: Mapping[int, Value]) -> Iterator[str]:
    for key, value in values.items():
        yield from _series(f"{prefix}.{key}", value)


def _text(key: str, text: str | None) -> Iterator[str]:
    if text is not None:
        yield value_line(text, key=key)


def _numbers(owner: object, names: Iterable[str]) -> Iterator[str]:
    """Attributes that the player knows by the same name."""
    for name in names:
        yield from _series(name, getattr(owner, name))


def _clocks(prefix: str, clocks: Clocks) -> Iterator[str]:
    for item in dataclasses.fields(clocks):
        yield from _series(f"{prefix}.{item.name}", getattr(clocks, item.name))


def _memory(memory: Memory, bar1: Bar1 | None) -> Iterator[str]:
    yield from _series("memory_total", memory.total)
    yield from _series("memory_used", memory.used)
    yield from _series("memory_reserved", memory.reserved)
    if bar1 is not None:
        yield from _series("bar1_total", bar1.total)
        yield from _series("bar1_used", bar1.used)


def _power(gpu: Gpu) -> Iterator[str]:
    power = gpu.power
    yield from _series("power_mw", power.draw_mw)
    yield from _series("power_average_mw", power.average_mw)
    yield from _series("power_limit_mw", power.limit_mw)
    yield from _series("power_limit_enforced_mw", power.limit_mw if power.enforced_mw is None else power.enforced_mw)
    yield from _series("power_limit_default_mw", power.limit_mw)
    yield from _series("power_limit_min_mw", power.min_mw)
    yield from _series("power_limit_max_mw", power.max_mw)
    if not isinstance(gpu.energy_mj, FromPower):
        yield from _series("energy_mj", gpu.energy_mj)
    elif isinstance(power.draw_mw, float | int | Steps) and not isinstance(power.draw_mw, Code):
        yield from _series("energy_mj", Counter(power.draw_mw, gpu.energy_mj.start_mj))


def _pcie(pcie: Pcie) -> Iterator[str]:
    gpu_max = pcie.generation_max if pcie.generation_gpu_max is None else pcie.generation_gpu_max
    yield from _series("pcie_generation", pcie.generation)
    yield from _series("pcie_generation_max", pcie.generation_max)
    yield from _series("pcie_generation_gpu_max", gpu_max)
    yield from _series("pcie_width", pcie.width)
    yield from _series("pcie_width_max", pcie.width_max)
    yield from _series("pcie_transmit_kib", pcie.transmit_kib)
    yield from _series("pcie_receive_kib", pcie.receive_kib)
    yield from _series("pcie_replays", pcie.replays)


def _nvlink(nvlink: NvLink) -> Iterator[str]:
    yield from _series("nvlink_count", float(nvlink.count))
    yield from _series("nvlink.version", nvlink.version)
    yield from _series("nvlink.speed", nvlink.speed_mbps)
    yield from _series("nvlink.state", nvlink.state)
    yield from _series("nvlink.remote_type", nvlink.remote_type)
    for link, state in nvlink.states.items():
        yield from _series(f"nvlink.{link}.state", state)
    for (link, counter), value in nvlink.errors.items():
        yield from _series(f"nvlink.{link}.error.{counter}", value)
    for link, remote in enumerate(nvlink.remotes):
        yield from _text(f"nvlink.{link}.remote", remote)


def _ecc(ecc: Ecc) -> Iterator[str]:
    yield from _series("ecc_mode", ecc.enabled)
    yield from _series("ecc_mode_pending", ecc.enabled if ecc.pending is None else ecc.pending)
    yield from _series("ecc.0.0", ecc.corrected_volatile)
    yield from _series("ecc.0.1", ecc.corrected_aggregate)
    yield from _series("ecc.1.0", ecc.uncorrected_volatile)
    yield from _series("ecc.1.1", ecc.uncorrected_aggregate)
    for (error, counter, location), value in ecc.locations.items():
        yield from _series(f"ecc.{error}.{counter}.{location}", value)


def _health(gpu: Gpu) -> Iterator[str]:
    if gpu.ecc is not None:
        yield from _ecc(gpu.ecc)
    if gpu.remapped_rows is not None:
        rows = gpu.remapped_rows
        yield from _series("remapped_correctable", rows.correctable)
        yield from _series("remapped_uncorrectable", rows.uncorrectable)
        yield from _series("remapped_pending", rows.pending)
        yield from _series("remapped_failed", rows.failed)
        for name, count in zip(("max", "high", "partial", "low", "none"), rows.banks or (), strict=False):
            yield from _series(f"remap_banks.{name}", count)
    if gpu.retired_pages is not None:
        yield from _series("retired_pages.0", gpu.retired_pages.single_bit)
        yield from _series("retired_pages.1", gpu.retired_pages.double_bit)
        yield from _series("retired_pages_pending", gpu.retired_pages.pending)


def _fields(gpu: Gpu) -> Iterator[str]:
    for key, value in gpu.fields.items():
        if isinstance(key, tuple):
            scope = "all" if key[1] == ALL_LINKS else str(key[1])
            yield from _series(f"field.{key[0]}.{scope}", value)
        else:
            yield from _series(f"field.{key}", value)
    yield from _many("field_type", gpu.field_types)


_GPU_NUMBERS = [
    "minor",
    "architecture",
    "brand",
    "cores",
    "module_id",
    "memory_bus_width",
    "pci_device_id",
    "pci_subsystem_id",
    "present",
    "lost",
    "utilization",
    "memory_utilization",
    "encoder_utilization",
    "decoder_utilization",
    "temperature",
    "memory_temperature",
    "clock_reasons",
    "clock_reasons_supported",
    "performance_state",
    "fan_speed",
    "persistence_mode",
    "compute_mode",
    "virtualization_mode",
]


def _plain(value: float) -> float:
    """An enumeration's number; a Code among them would be written as a failure."""
    return int(value)


def _gpu(gpu: Gpu) -> Iterator[str]:
    yield line("gpu", key=gpu.key)
    for key in ("uuid", "name", "pci_bus_id", "serial", "vbios"):
        yield from _text(key, getattr(gpu, key))
    yield from _numbers(gpu, _GPU_NUMBERS)
    yield from _series("compute_major", gpu.compute_capability[0])
    yield from _series("compute_minor", gpu.compute_capability[1])
    yield from _series("event_types", _plain(gpu.event_types))
    yield from _series("process_utilization", int(gpu.process_utilization))
    supported = int(gpu.gpm is not None) if gpu.gpm_supported is None else gpu.gpm_supported
    yield from _series("gpm_supported", supported)
    yield from _power(gpu)
    yield from _clocks("clock", gpu.clocks)
    yield from _clocks("clock_max", gpu.clocks_max)
    yield from _memory(gpu.memory, gpu.bar1)
    if gpu.pcie is not None:
        yield from _pcie(gpu.pcie)
    if gpu.nvlink is not None:
        yield from _nvlink(gpu.nvlink)
    yield from _health(gpu)
    yield from _many("temperature_threshold", gpu.temperature_thresholds)
    yield from _many("violation", gpu.violations_ns)
    yield from _many("gpm", gpu.gpm or {})
    yield from _fields(gpu)
    for key, value in gpu.extra.items():
        yield from _series(key, value)
    if gpu.mig is not None:
        yield from _mig_of_gpu(gpu.mig)
    for process in gpu.processes:
        yield from _process(process)
    if gpu.mig is not None:
        yield from _mig_parts(gpu.mig)


def _process(process: Process) -> Iterator[str]:
    yield line("process", pid=process.pid)
    yield from _text("name", process.name)
    yield from _text("kind", process.kind)
    yield from _numbers(process, ("memory", "alive", "instance", "compute", "sm_utilization", "memory_utilization"))


def _mig_of_gpu(mig: Mig) -> Iterator[str]:
    yield from _series("mig_devices_max", mig.devices_max)
    yield from _series("mig_mode_pending", mig.pending)


_ENGINES = ("copy_engines", "decoders", "encoders", "jpegs", "ofas")


def _placement(placement: tuple[int, int]) -> Iterator[str]:
    yield from _series("placement_start", placement[0])
    yield from _series("placement_size", placement[1])


def _instance(instance: GpuInstance) -> Iterator[str]:
    yield line("instance", key=instance.key, id=instance.id)
    yield from _numbers(instance, ("profile", "slices", "memory_mib", *_ENGINES))
    yield from _placement(instance.placement)
    yield from _many("gpm", instance.gpm)
    for compute in instance.computes:
        yield line("compute", id=compute.id)
        yield from _text("uuid", compute.uuid)
        yield from _text("name", compute.name)
        yield from _numbers(compute, ("sm_count", "slices", "profile"))
        yield from _placement(compute.placement)
        yield from _memory(compute.memory, compute.bar1)
        yield from _series("ecc.1.0.7", compute.ecc_sram_uncorrected)
        for key, value in compute.extra.items():
            yield from _series(key, value)


def _mig_parts(mig: Mig) -> Iterator[str]:
    for instance in mig.instances:
        yield from _instance(instance)
    for profile in mig.profiles:
        yield line("profile", number=profile.number)
        yield from _text("name", profile.name)
        yield from _numbers(profile, ("id", "slices", "instances", "sm_count", "memory_mib", *_ENGINES))
    for layout in mig.layouts:
        words: dict[str, Word] = {"from": layout.start, "enabled": int(layout.enabled)}
        yield line("layout", **words, instances=listed(layout.instances))


def _edge(name: str, behaviour: Code | float | None) -> Iterator[str]:
    if isinstance(behaviour, Code):
        yield from _series(f"gpm_{name}_error", _plain(behaviour))
    else:
        yield from _series(f"gpm_{name}_value", behaviour)


def _system(scenario: Scenario) -> Iterator[str]:
    yield line("system", wall_offset=wall_offset(scenario.wall_offset))
    yield from _text("driver_version", scenario.driver_version)
    yield from _text("nvml_version", scenario.nvml_version)
    yield from _numbers(scenario, ("cuda_version", "sample_period", "sample_ring"))
    yield from _series("live_enumeration", int(scenario.live_enumeration))
    yield from _series("gpm_refresh", scenario.gpm.refresh)
    yield from _series("gpm_interval_min", scenario.gpm.interval_min)
    yield from _edge("short", scenario.gpm.short)
    yield from _edge("first", scenario.gpm.first)


def _event(event: Event) -> str:
    words: dict[str, Word] = {"at": event.time, "gpu": event.gpu, "type": event.type, "data": event.data}
    return line("event", **words, instance=event.instance, compute=event.compute)


def scenario_lines(scenario: Scenario) -> Iterator[str]:
    yield from _system(scenario)
    for gpu in scenario.gpus:
        yield from _gpu(gpu)
    for start, keys in scenario.orders:
        yield line("order", **{"from": start}, gpus=listed(keys))
    yield from map(_event, scenario.events)
    yield from map(fault_line, scenario.faults)
