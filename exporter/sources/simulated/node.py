"""Builds the devices of a simulated node: who they are, and the timeline of each."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from exporter.fields import CLOCK_EVENTS, PROFILING
from exporter.model import Device, Entity
from exporter.sources.simulated import physics
from exporter.sources.simulated.mix import NOTHING
from exporter.sources.simulated.physics import constant
from exporter.sources.simulated.script import PATTERN, Activity
from exporter.sources.simulated.workloads import SimulatedInstance, SimulatedWorkload
from exporter.sources.timeline import StepFunction, Timeline, build

MODEL = "NVIDIA H100 80GB HBM3"  # source_info marks it as simulated
MIB = 2**20
MEMORY, RESERVED, CONTEXT = 81559 * MIB, 480 * MIB, 520 * MIB  # bytes; a process' CUDA context takes CONTEXT


@dataclass(frozen=True, slots=True)
class SimulatedGpu:
    """One device, its activity, and the timeline that follows from it."""

    device: Device
    workload: str
    activity: Activity
    timeline: Timeline


def build_node(workloads: Sequence[SimulatedWorkload], gpus: int) -> list[SimulatedGpu]:
    """``gpus`` boards with the workloads in turn; a board with MIG instances is followed by them.

    The same call gives the same node; boards with the same workload differ in detail.
    """
    return [track for number in range(gpus) for track in _board(number, workloads[number % len(workloads)])]


def _board(number: int, workload: SimulatedWorkload) -> Iterator[SimulatedGpu]:
    random = Random(f"{workload.name}/{number}")
    device = Device(
        Entity(f"GPU-51313131-0000-0000-0000-{number:012d}"),
        str(number),
        model=MODEL,
        pci_bus_id=f"{number // 128:08X}:{number % 128:02X}:00.0",
        driver_version="simulated",
        minor=str(number),
        mig_enabled=bool(workload.slices),
    )
    if not workload.slices:
        activity = workload.play(random)
        watts = physics.demand([(activity.kernels, 1.0)])
        levels = _context(activity, watts, random)
        timeline = build((NOTHING, *activity.kernels), activity.copies, duration=PATTERN, levels=levels)
        yield SimulatedGpu(device, workload.name, activity, timeline)
        return
    cut = [(part, part.play(random)) for part in workload.slices]
    watts = physics.demand((activity.kernels, part.share) for part, activity in cut)
    whole = Activity(
        processes=sum(activity.processes for _, activity in cut),
        memory=sum(activity.memory * part.memory for part, activity in cut),
    )
    yield SimulatedGpu(device, workload.name, whole, Timeline(PATTERN, _context(whole, watts, random), None))
    for part, activity in cut:
        yield _instance(number, device, workload, part, activity)


def _instance(
    number: int, board: Device, workload: SimulatedWorkload, part: SimulatedInstance, activity: Activity
) -> SimulatedGpu:
    """Only what is measured per instance: links, power and clocks are the board's, and the claim does not exist."""
    levels = {**_memory(activity, part.memory), "processes": constant(activity.processes), **_host(activity)}
    device = Device(
        Entity(board.entity.uuid, part.gpu_instance),
        board.index,
        frozenset({*PROFILING, *levels}),
        model=MODEL,
        pci_bus_id=board.pci_bus_id,
        driver_version=board.driver_version,
        minor=board.minor,
        mig_profile=part.profile,
        mig_uuid=f"MIG-51313131-{part.gpu_instance:04d}-0000-0000-{number:012d}",
    )
    timeline = build((NOTHING, *activity.kernels), duration=PATTERN, levels=levels)
    return SimulatedGpu(device, workload.name, activity, timeline)


def _context(activity: Activity, watts: array[float], random: Random) -> Mapping[str, StepFunction]:
    """The fields that belong to a board."""
    held = activity.processes > 0
    return {
        **{f"clock_event:{label}": constant(0.0) for label in CLOCK_EVENTS.values()},
        **physics.levels(watts, held=held, limit=activity.power_limit, random=random),
        **_memory(activity, 1.0),
        "processes": constant(activity.processes),
        **_host(activity),
        "pcie_replay": constant(0.0),
        "ecc_corrected": constant(0.0),
        "ecc_uncorrected": constant(0.0),
        "remapped_rows_corrected": constant(0.0),
        "remapped_rows_uncorrected": constant(0.0),
        "remap_failed": constant(0.0),
        "pcie_link_generation": constant(5.0 if held else 1.0),
        "pcie_link_generation_max": constant(5.0),
        "pcie_link_width": constant(16.0),
        "pcie_link_width_max": constant(16.0),
        "nvlink_links_up": constant(18.0),
    }


def _host(activity: Activity) -> Mapping[str, StepFunction]:
    """What the readers of processes and of the host would report."""
    if activity.processes == 0:
        return {}
    return {"host_main_thread": constant(activity.main_thread), "host_pressure": constant(activity.pressure)}


def _memory(activity: Activity, share: float) -> Mapping[str, StepFunction]:
    """Of the whole board, or of an instance that has a ``share`` of its memory."""
    total, reserved = int(share * MEMORY), int(share * RESERVED)
    used = int(activity.memory * total) + activity.processes * CONTEXT
    return {
        "memory_total": constant(total),
        "memory_reserved": constant(reserved),
        "memory_used": constant(used),
        "memory_free": constant(total - reserved - used),
    }
