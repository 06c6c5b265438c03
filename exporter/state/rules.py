"""From evidence to a state: the first rule that holds (docs/states.md).

A rule whose inputs are missing neither holds nor fails. When such a rule comes before the first one that holds, the
state is ``unknown``: the missing input could have decided otherwise.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from exporter.state.kleene import above, below, every, some
from exporter.state.thresholds import Thresholds


class State(enum.Enum):
    """Values of the ``state`` label."""

    UNALLOCATED = "unallocated"
    ALLOCATED_NO_PROCESS = "allocated_no_process"
    PROCESS_IDLE = "process_idle"
    INPUT_STARVED = "input_starved"
    TRANSFER_BOUND = "transfer_bound"
    COMMUNICATION_BOUND = "communication_bound"
    LAUNCH_BOUND = "launch_bound"
    SUSPECTED_HANG = "suspected_hang"
    LATENCY_BOUND = "latency_bound"
    DRAM_BOUND = "dram_bound"
    TENSOR_BOUND = "tensor_bound"
    PIPE_BOUND = "pipe_bound"
    MIXED = "mixed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Evidence:
    """Means over one window; None: not known. A link that the GPU does not have is 0, not None."""

    allocated: bool | None = None
    processes: int | None = None
    busy: float | None = None  # on MIG instances the graphics engine stands in
    engine: float | None = None
    sm: float | None = None
    tensor: float | None = None  # with the clock factor where the reference clock is known
    dram: float | None = None
    pipes: Mapping[str, float] = field(default_factory=dict)  # fp64, fp32, fp16, integer: those that are measured
    pcie: float | None = None  # the busier direction, share of the link
    pcie_at_most: float | None = None  # of a GPU instance: the whole board's
    nvlink: float | None = None
    rdma: float | None = None
    power: float | None = None  # (P - idle) / (limit - idle)
    power_at_most: float | None = None  # P / limit: the ratio above is below it, whatever the idle power is
    collective: float | None = None  # share of busy time, from traces
    input_wait: float | None = None  # share of the time in which the main thread waited for data, from traces
    host_pressure: float | None = None  # the larger of cpu and io
    main_thread: float | None = None  # share of a core
    tensor_ceiling: float | None = None
    dram_ceiling: float | None = None


class Verdict(NamedTuple):
    """A state and why, for people."""

    state: State
    reason: str


Condition = Callable[[Evidence, Thresholds], "bool | None"]


class Rule(NamedTuple):
    """One state, when it holds, and what to say then (formatted with the evidence as ``e``)."""

    state: State
    holds: Condition
    reason: str


def _quiet(e: Evidence, t: Thresholds) -> bool | None:
    known = [value for value in (e.busy, e.sm, e.engine) if value is not None]
    return below(max(known), t.nothing_runs, t.slack) if known else None


def _no_process(e: Evidence) -> bool | None:
    return None if e.processes is None else e.processes == 0


def _unallocated(e: Evidence, t: Thresholds) -> bool | None:
    # where nobody allocates (bare metal), a GPU that no process holds is unallocated
    return every(_quiet(e, t), e.allocated is False if e.allocated is not None else _no_process(e))


def _allocated_no_process(e: Evidence, t: Thresholds) -> bool | None:
    return every(_quiet(e, t), e.allocated, _no_process(e))


def _process_idle(e: Evidence, t: Thresholds) -> bool | None:
    holds = None if e.processes is None else e.processes > 0
    return every(_quiet(e, t), some(holds, e.allocated))


def _transfer(e: Evidence, t: Thresholds) -> bool | None:
    return every(below(e.sm, t.sm_starved, t.slack), _pcie_high(e, t))


def _pcie_high(e: Evidence, t: Thresholds) -> bool | None:
    if e.pcie is not None:
        return above(e.pcie, t.pcie_high, t.slack)
    return False if below(e.pcie_at_most, t.pcie_high, t.slack) else None


def _not(condition: bool | None) -> bool | None:
    return None if condition is None else not condition


def _suspected_hang(e: Evidence, t: Thresholds) -> bool | None:
    links = every(below(e.pcie, t.pcie_idle, t.slack), below(e.nvlink, t.nvlink_idle, t.slack))
    units = every(below(e.tensor, t.tensor_none, t.slack), below(e.dram, t.dram_none, t.slack))
    return every(above(e.busy, t.busy_full, t.slack), units, links, _low_power(e, t))


def _low_power(e: Evidence, t: Thresholds) -> bool | None:
    if e.power is not None:
        return below(e.power, t.power_low, t.slack)
    return below(e.power_at_most, t.power_low, t.slack) or None  # at most high tells nothing


def _communication(e: Evidence, t: Thresholds) -> bool | None:
    links = some(
        above(e.nvlink, t.nvlink_high, t.slack), above(e.rdma, t.nvlink_high, t.slack) if e.rdma is not None else False
    )
    low = every(below(e.tensor, t.tensor_low, t.slack), below(e.dram, t.dram_low, t.slack))
    traced = above(e.collective, t.collective_high, t.slack) if e.collective is not None else False
    return some(traced, every(links, low))


def _dram(e: Evidence, t: Thresholds) -> bool | None:
    if e.dram is None:
        return None
    others = max((*e.pipes.values(), e.tensor or 0.0))
    share = e.dram / (e.dram_ceiling or t.dram_ceiling)
    known = None if e.tensor is None else True  # a tensor pipe that is not measured may be the busiest
    return every(above(share, t.dram_bound, t.slack), below(others, e.dram, t.slack), known)


def _tensor(e: Evidence, t: Thresholds) -> bool | None:
    share = None if e.tensor is None else e.tensor / (e.tensor_ceiling or t.tensor_ceiling)
    return above(share, t.tensor_bound, t.slack)


def _pipe(e: Evidence, t: Thresholds) -> bool | None:
    if not e.pipes:  # a pipe cannot be busier than the SMs it belongs to
        return False if below(e.sm, t.pipe_bound, t.slack) else None
    return above(max(e.pipes.values()), t.pipe_bound, t.slack)


def _launch(e: Evidence, t: Thresholds) -> bool | None:
    rest = every(*(below(value, t.rest_low, t.slack) for value in (e.tensor, e.dram, *e.pipes.values())))
    engine = e.engine if e.engine is not None else e.busy
    return every(
        above(engine, t.engine_high, t.slack),
        below(e.sm, t.sm_launch, t.slack),
        rest,
        below(e.nvlink, t.nvlink_high, t.slack),
    )


def _starved(e: Evidence, t: Thresholds) -> bool | None:
    gaps = every(above(e.busy, t.nothing_runs, t.slack), below(e.busy, t.busy_gaps, t.slack))
    host = some(above(e.host_pressure, t.host_pressure, t.slack), above(e.main_thread, t.main_thread, t.slack))
    return every(below(e.sm, t.sm_starved, t.slack), gaps, _not(_pcie_high(e, t)), host)


def starved_by_trace(e: Evidence, t: Thresholds) -> bool | None:
    """A trace says outright that the program waited for its loader; no other input could decide otherwise."""
    if e.input_wait is None:
        return False
    return every(above(e.input_wait, t.input_wait, t.slack), below(e.sm, t.sm_starved, t.slack))


def _latency(e: Evidence, t: Thresholds) -> bool | None:
    units = (e.tensor, e.dram, *e.pipes.values())
    return every(above(e.sm, t.sm_resident, t.slack), *(below(value, t.limiter_low, t.slack) for value in units))


def _mixed(e: Evidence, t: Thresholds) -> bool | None:
    return True if e.sm is not None else None


RULES: tuple[Rule, ...] = (
    Rule(State.UNALLOCATED, _unallocated, "nobody holds it"),
    Rule(State.ALLOCATED_NO_PROCESS, _allocated_no_process, "allocated, but no process uses it"),
    Rule(State.PROCESS_IDLE, _process_idle, "held, but nothing runs"),
    Rule(State.INPUT_STARVED, starved_by_trace, "the program waits for its data loader {e.input_wait:.0%} of the time"),
    Rule(State.TRANSFER_BOUND, _transfer, "PCIe at {e.pcie:.0%} of the link, SM active {e.sm:.0%}"),
    Rule(
        State.SUSPECTED_HANG,
        _suspected_hang,
        "busy {e.busy:.0%} at low power, no unit or link is active: a hang or a wait",
    ),
    Rule(State.COMMUNICATION_BOUND, _communication, "links busy, tensor cores and memory mostly idle"),
    Rule(State.DRAM_BOUND, _dram, "memory at {e.dram:.0%}"),
    Rule(State.TENSOR_BOUND, _tensor, "tensor pipe at {e.tensor:.0%}"),
    Rule(State.PIPE_BOUND, _pipe, "one arithmetic pipe is busy more than half of the time"),
    Rule(State.LAUNCH_BOUND, _launch, "the engine is busy, SM active only {e.sm:.0%}: small kernels or launch gaps"),
    Rule(State.INPUT_STARVED, _starved, "busy {e.busy:.0%} with gaps, while the host is under pressure"),
    Rule(State.LATENCY_BOUND, _latency, "SM active {e.sm:.0%}, no unit above 40 %: warps wait"),
    Rule(State.MIXED, _mixed, "no single limit"),
)


def judge(evidence: Evidence, thresholds: Thresholds) -> Verdict:
    """The state of one window."""
    undecided: list[State] = []
    for rule in RULES:
        holds = rule.holds(evidence, thresholds)
        if holds is None:
            undecided.append(rule.state)
        elif holds:
            if undecided:
                return Verdict(
                    State.UNKNOWN, f"cannot rule out {', '.join(s.value for s in undecided)}: inputs missing"
                )
            return Verdict(rule.state, rule.reason.format(e=evidence))
    return Verdict(State.UNKNOWN, "the deciding inputs are missing")
