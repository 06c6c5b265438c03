"""Power, temperatures and clocks of an H100 SXM board, from the kernels that run.

The coefficients are chosen by hand, so that idle draws 70 W, a held context 115 W, dense matrix products about 600 W
and decode about 450 W: plausible curves, not predictions.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Mapping
from random import Random

from exporter.sources.simulated.mix import NVLINK
from exporter.sources.simulated.script import PATTERN
from exporter.sources.timeline import Kernel, StepFunction

STEP = 0.25  # seconds for which power is held
STEPS = math.ceil(PATTERN / STEP)
IDLE, HELD = 70.0, 115.0  # watts without and with a process
WATTS: Mapping[str, float] = {
    "tensor": 380.0,
    "fp64": 150.0,
    "fp32": 150.0,
    "fp16": 150.0,
    "integer": 60.0,
    "dram": 210.0,
    "nvlink_transmit": 40.0 / NVLINK,
}
SM_WATTS = 110.0
SM_CLOCK, IDLE_CLOCK, CLOCK_STEP = 1980e6, 345e6, 15e6  # hertz
MEMORY_CLOCK = 2619e6
AMBIENT, DEGREES_PER_WATT, INERTIA = 27.0, 0.055, 15.0  # celsius, celsius a watt, seconds


def demand(activities: Iterable[tuple[Iterable[Kernel], float]]) -> array[float]:
    """Watts above the floor that the kernels draw, one value per STEP; each with its share of the board."""
    watts = array("d", bytes(8 * STEPS))
    for kernels, share in activities:
        for kernel in kernels:
            drawn = share * _watts(kernel) / STEP
            step, start = int(kernel.start / STEP), kernel.start
            while start < kernel.end:
                stop = min(kernel.end, (step + 1) * STEP)
                watts[step] += drawn * (stop - start)
                step, start = step + 1, stop
    return watts


def levels(asked: array[float], *, held: bool, limit: float, random: Random) -> dict[str, StepFunction]:
    """Power, temperatures, clocks and the clock events that follow from them. ``held``: a process is there."""
    floor = HELD if held else IDLE
    power, clock = array("d"), array("d")
    for watts in asked:
        excess = max(1.0, watts / (limit - floor))
        power.append(floor + watts / excess + random.uniform(-1.0, 0.0))
        # dynamic power goes about with the square of the clock where the voltage has little room left to follow it
        top = SM_CLOCK / math.sqrt(excess) if held else IDLE_CLOCK
        clock.append(top // CLOCK_STEP * CLOCK_STEP)
    temperature = _temperature(power)
    capped = array("d", (float(held and hertz < SM_CLOCK) for hertz in clock))
    return {
        "power": _steps(power),
        "power_limit": constant(limit),
        "temperature": _steps(temperature),
        "memory_temperature": _steps(array("d", (celsius + 9.0 for celsius in temperature))),
        "sm_clock": _steps(clock),
        "memory_clock": constant(MEMORY_CLOCK),
        "clock_event:power_cap": _steps(capped),
        "clock_event:idle": constant(float(not held)),
    }


def constant(value: float) -> StepFunction:
    """A constant function."""
    return StepFunction(array("d", [0.0]), array("d", [value]), PATTERN)


def _watts(kernel: Kernel) -> float:
    return SM_WATTS * (kernel.sm or 0.0) + sum(watts * kernel.pipes[channel] for channel, watts in WATTS.items())


def _temperature(power: array[float]) -> array[float]:
    """Whole degrees, as the driver has them. Run through twice: the pattern then ends as warm as it began."""
    celsius, whole = AMBIENT + DEGREES_PER_WATT * sum(power) / len(power), array("d")
    for _ in range(2):
        whole = array("d")
        for watts in power:
            celsius += (AMBIENT + DEGREES_PER_WATT * watts - celsius) * STEP / INERTIA
            whole.append(round(celsius))
    return whole


def _steps(values: array[float]) -> StepFunction:
    """One value per STEP; equal neighbours are merged."""
    times, kept = array("d"), array("d")
    for step, value in enumerate(values):
        if not kept or value != kept[-1]:
            times.append(step * STEP)
            kept.append(value)
    return StepFunction(times, kept, PATTERN)
