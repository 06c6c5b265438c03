"""What each workload does, written down event by event; durations are seconds.

Durations and mixes are chosen by hand to be plausible on an H100 and to show what the workload's name says; none is
measured.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from exporter.sources.simulated.mix import (
    ALL_REDUCE,
    ATTENTION,
    CONVOLUTION,
    DECODE,
    ELEMENTWISE,
    GEMM,
    SMALL_KERNELS,
    Mix,
)
from exporter.sources.simulated.script import PATTERN, Activity, Script

Play = Callable[[Random], Activity]
SMS = 132  # of an H100 SXM


def training(random: Random, peers: bool = True) -> Activity:
    """A transformer step of about a second: forward, backward with its all-reduce beside it, optimizer. One checkpoint.

    Without ``peers`` nothing is reduced: a single GPU, or a MIG instance.
    """
    script = Script()
    checkpoint = random.uniform(0.3, 0.8) * PATTERN
    while not script.over:
        if script.now >= checkpoint:
            checkpoint = PATTERN
            seconds = random.uniform(3.0, 4.0)
            script.copy(seconds * 0.8, 18e9, "device_to_host")
            script.wait(seconds)
        script.copy(0.01, 12e9, "host_to_device")
        script.wait(random.uniform(0.006, 0.014))
        script.run(random.uniform(0.18, 0.20), GEMM.varied(random))
        script.run(random.uniform(0.08, 0.10), ATTENTION.varied(random))
        script.run(random.uniform(0.03, 0.04), ELEMENTWISE.varied(random))
        if peers:
            script.beside(random.uniform(0.30, 0.36), ALL_REDUCE.varied(random), collective=True)
        script.run(random.uniform(0.34, 0.38), GEMM.varied(random))
        script.run(random.uniform(0.12, 0.14), ATTENTION.varied(random))
        if peers:
            script.run(random.uniform(0.02, 0.06), ALL_REDUCE.varied(random), collective=True)
        script.run(random.uniform(0.05, 0.06), ELEMENTWISE.varied(random))
    return script.activity(memory=0.86)


def input_starved(random: Random) -> Activity:
    """The loader needs 800 ms for what the GPU processes in 200 ms."""
    script = Script()
    for second in range(int(PATTERN)):
        seconds = random.uniform(0.18, 0.22)
        script.now = second + random.uniform(0.70, 0.78)
        script.copy(0.02, 7e9, "host_to_device")
        script.wait(0.005)
        script.run(0.35 * seconds, CONVOLUTION.varied(random))
        script.run(0.55 * seconds, CONVOLUTION.varied(random))
        script.run(0.10 * seconds, ELEMENTWISE.varied(random))
    return script.activity(memory=0.31, main_thread=0.98, pressure=0.25)


def tiny_kernels(random: Random, sms: int = SMS) -> Activity:
    """One block on one SM for 900 ms of each second."""
    script = Script()
    block = Mix(sm=1 / sms, occupancy=0.5 / sms, fp32=0.3 / sms, integer=0.1 / sms, dram=0.0005)
    for second in range(int(PATTERN)):
        script.now = second + random.uniform(0.0, 0.08)
        script.run(random.uniform(0.88, 0.92), block.varied(random, 0.02))
    return script.activity(memory=0.02)


def communication_bound(random: Random) -> Activity:
    """Collectives hold a few SMs and the links for most of each step."""
    script = Script()
    spin = Mix(sm=0.15, occupancy=0.04, fp32=0.005, integer=0.02, dram=0.09, nvlink=0.70)
    while not script.over:
        script.wait(random.uniform(0.002, 0.008))
        script.run(random.uniform(0.04, 0.08), GEMM.varied(random))
        script.run(random.uniform(0.30, 0.55), spin.varied(random, 0.15), collective=True)
    return script.activity(memory=0.78)


def decode(random: Random) -> Activity:
    """An LLM that generates token by token: reads all weights for each; a prefill now and then."""
    script = Script()
    while not script.over:
        if random.random() < 0.08:
            script.run(random.uniform(0.05, 0.15), GEMM.varied(random))
        script.run(random.uniform(0.10, 0.25), DECODE.varied(random, 0.04))
        script.wait(random.uniform(0.0005, 0.004))
    return script.activity(memory=0.91)


def launch_bound(random: Random) -> Activity:
    """Kernels of some µs with gaps of some µs. A run of them is one event, its values are means with the gaps in.

    Gaps that short are far below the driver's window: it says busy throughout, and the engine agrees.
    """
    script = Script()
    while not script.over:
        script.run(random.uniform(0.06, 0.14), SMALL_KERNELS.varied(random, 0.15))
        script.wait(random.uniform(0.0002, 0.001))
    return script.activity(memory=0.12, main_thread=0.99)


def hang(random: Random) -> Activity:
    """A collective waits for a peer that is gone: four blocks spin, nothing moves, for ever."""
    script = Script()
    spin = Mix(sm=4 / SMS, occupancy=1 / SMS, integer=0.002, dram=0.0004)
    while not script.over:
        script.run(random.uniform(1.0, 3.0), spin.varied(random, 0.01), collective=True)
    return script.activity(memory=0.83)


def allocated(random: Random) -> Activity:
    """A process holds memory and does nothing."""
    return Script().activity(memory=random.uniform(0.4, 0.7))


def unused(random: Random) -> Activity:
    """No process at all."""
    del random
    return Script().activity(memory=0.0, processes=0)


def power_throttled(random: Random) -> Activity:
    """Dense matrix products on a board whose limit was set to 300 W."""
    script = Script()
    while not script.over:
        script.run(random.uniform(0.4, 0.6), GEMM.varied(random))
        script.run(random.uniform(0.02, 0.05), ELEMENTWISE.varied(random))
        script.wait(random.uniform(0.001, 0.004))
    return script.activity(memory=0.74, power_limit=300.0)


def flapping(random: Random) -> Activity:
    """Busy and idle in turn, each for some seconds."""
    script = Script()
    while not script.over:
        until = script.now + random.uniform(2.0, 9.0)
        while script.now < until:
            script.run(random.uniform(0.2, 0.5), GEMM.varied(random, 0.1))
            script.run(random.uniform(0.05, 0.1), ELEMENTWISE.varied(random))
        script.wait(random.uniform(2.0, 9.0))
    return script.activity(memory=0.55)
