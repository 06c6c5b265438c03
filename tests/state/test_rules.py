"""The rules, one by one, on evidence of the field; and what happens when inputs are missing."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.page.history import PARTS
from exporter.state.hysteresis import Tracker
from exporter.state.rules import Evidence, State, judge
from exporter.state.thresholds import Thresholds, reasons

T = Thresholds()
# rows of public reports (docs/field-cases.md among them), with what they do not say left out
FIELD = {
    "T4 under load, 91 % claimed, engine 0.156 (no SM active)": (
        Evidence(busy=0.91, engine=0.156, tensor=0.0058, dram=0.0928),
        State.UNKNOWN,  # without SM active nothing tells compute from waiting
    ),
    "A100 dcgmproftester: tensor 0.93, dram 0.69 (no SM active)": (
        Evidence(engine=0.9956, tensor=0.929, dram=0.691, pcie=0.01, nvlink=0.0),
        State.TENSOR_BOUND,  # idle links and a busy tensor pipe exclude what comes before, whatever SM active is
    ),
    "A100 dcgmproftester with SM active": (
        Evidence(engine=0.9956, sm=0.99, tensor=0.929, dram=0.691, pcie=0.01, nvlink=0.0),
        State.TENSOR_BOUND,
    ),
    "A100 MIG instance, memory bound, no tensor": (
        Evidence(engine=0.9999, sm=0.98, tensor=0.0001, dram=0.6226, pcie_at_most=0.1, nvlink=0.0, pipes={"fp32": 0.2}),
        State.MIXED,  # 0.62 is 69 % of the ceiling: just below dram_bound
    ),
    "H100 training: SM 0.91, tensor 0.28, dram 0.21, 572 W": (
        Evidence(busy=1.0, sm=0.9126, tensor=0.2794, dram=0.2137, pcie=0.01, nvlink=0.011, power=0.79),
        State.UNKNOWN,  # FP32 and FP16 pipes are not in the report: one of them may be the limit
    ),
    "the same, with its other pipes low": (
        Evidence(
            busy=1.0, sm=0.9126, tensor=0.2794, dram=0.2137, pcie=0.01, nvlink=0.011, power=0.79, pipes={"fp32": 0.2}
        ),
        State.LATENCY_BOUND,
    ),
    "A100 MIG, tensor 0.94": (
        Evidence(engine=0.993, sm=0.987, tensor=0.94, dram=0.1, pcie_at_most=0.1, nvlink=0.0),
        State.TENSOR_BOUND,
    ),
    "NCCL hang: 100 % at 70 W (field case 31)": (
        Evidence(busy=1.0, engine=1.0, sm=0.03, tensor=0.0, dram=0.0, power_at_most=0.1, pcie=0.01, nvlink=0.0),
        State.SUSPECTED_HANG,
    ),
    "copies fill the link": (
        Evidence(busy=0.4, sm=0.1, tensor=0.0, dram=0.1, pcie=0.8, nvlink=0.0, power=0.2),
        State.TRANSFER_BOUND,
    ),
    "DLRM step from a trace: collectives known": (
        Evidence(busy=0.66, sm=0.08, collective=0.9, pcie=0.01),
        State.COMMUNICATION_BOUND,
    ),
    "the same without collectives": (Evidence(busy=0.66, sm=0.08, pcie=0.01), State.UNKNOWN),
    "held, nothing runs": (Evidence(busy=0.0, sm=0.0, processes=1), State.PROCESS_IDLE),
    "allocated, no process": (Evidence(busy=0.0, sm=0.0, processes=0, allocated=True), State.ALLOCATED_NO_PROCESS),
    "nobody": (Evidence(busy=0.0, sm=0.0, processes=0), State.UNALLOCATED),
    "FP64 solver": (
        Evidence(busy=1.0, sm=0.95, tensor=0.0, dram=0.3, pipes={"fp64": 0.7}, power=0.9, pcie=0.01, nvlink=0.0),
        State.PIPE_BOUND,
    ),
    "memory busy, tensor cores not measured": (
        Evidence(busy=1.0, sm=0.9, dram=0.8, pcie=0.01, nvlink=0.0, power=0.8),
        State.UNKNOWN,  # they may be busier still
    ),
    "nothing is known": (Evidence(), State.UNKNOWN),
}


@pytest.mark.parametrize("name", FIELD)
def test_states_of_the_field(name: str) -> None:
    evidence, expected = FIELD[name]
    verdict = judge(evidence, T)
    assert verdict.state is expected, verdict.reason


ratios = st.none() | st.floats(0, 1)
evidences = st.builds(
    Evidence,
    allocated=st.none() | st.booleans(),
    processes=st.none() | st.integers(0, 3),
    busy=ratios,
    engine=ratios,
    sm=ratios,
    tensor=ratios,
    dram=ratios,
    pipes=st.dictionaries(st.sampled_from(["fp64", "fp32", "fp16", "integer"]), st.floats(0, 1)),
    pcie=ratios,
    nvlink=ratios,
    power=ratios,
    host_pressure=ratios,
    main_thread=ratios,
)


@given(evidences, evidences)
def test_a_missing_input_never_turns_one_state_into_another(full: Evidence, mask: Evidence) -> None:
    """With less known the verdict stays or becomes unknown; else the missing input was guessed."""
    names = ("allocated", "processes", "busy", "engine", "sm", "tensor", "dram", "pcie", "nvlink", "power")
    known = {n: getattr(full, n) if getattr(mask, n) is not None else None for n in names}
    less = Evidence(**known, pipes=full.pipes, host_pressure=full.host_pressure, main_thread=full.main_thread)
    whole, part = judge(full, T).state, judge(less, T).state
    complete = all(getattr(full, n) is not None for n in (*names, "host_pressure", "main_thread"))
    if complete and full.allocated == (full.processes != 0) and full.engine == full.busy:
        assert part in (whole, State.UNKNOWN)


@given(st.lists(st.tuples(st.floats(0.5, 5), evidences), max_size=30))
def test_a_state_is_held_for_its_time(script: list[tuple[float, Evidence]]) -> None:
    tracker, now, changes = Tracker(T, 30.0), 0.0, [0.0]
    for seconds, evidence in script:
        before, now = tracker.verdict.state, now + seconds
        if tracker.feed(now, seconds, evidence).state is not before:
            changes.append(now)
    assert all(b - a >= 30.0 - 1e-9 for a, b in itertools.pairwise(changes))


def test_no_state_is_called_as_a_part_of_the_time_is() -> None:
    assert not {state.value for state in State} & set(PARTS)


def test_every_threshold_has_its_reason() -> None:
    assert len(reasons()) > 20
    assert all(why for _, why in reasons().values())
    with pytest.raises(KeyError, match="nonsense"):
        T.replaced({"nonsense": 0.5})
    with pytest.raises(ValueError, match="expected a ratio"):
        T.replaced({"pcie_high": 5})
    assert T.replaced({"pcie_high": 0.6}).pcie_high == 0.6
