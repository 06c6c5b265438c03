"""The honest numbers as arithmetic."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.core.derive import Form, honest, inputs
from exporter.fields import PIPES, PROFILING

ratio = st.floats(0.0, 1.0)
some_fields = st.frozensets(st.sampled_from(("busy", *PROFILING)))


@given(fields=some_fields, mig=st.booleans(), means=st.fixed_dictionaries(dict.fromkeys(("busy", *PROFILING), ratio)))
def test_parts_sum_to_one_and_are_never_negative(fields: frozenset[str], mig: bool, means: dict[str, float]) -> None:
    given_inputs = inputs(fields, mig)
    made = honest(given_inputs, {f: means[f] for f in given_inputs.required})
    if made is None:
        assert given_inputs.form is Form.NONE
        return
    assert sum(made.parts.values()) == pytest.approx(1.0, abs=1e-12)
    assert min(made.parts.values()) >= 0.0
    assert set(made.parts) == set(given_inputs.parts)


@given(busy=ratio, sm=ratio, pipes=st.fixed_dictionaries(dict.fromkeys(PIPES, ratio)))
def test_full_form_is_the_design_formula(busy: float, sm: float, pipes: dict[str, float]) -> None:
    made = honest(inputs(frozenset({"busy", "sm", *PIPES})), {"busy": busy, "sm": sm, **pipes})
    assert made is not None
    limiter = max(pipes.values())
    assert made.parts["working"] == min(sm, limiter)
    assert made.parts["stalled"] == pytest.approx(sm - min(sm, limiter), abs=1e-15)
    assert made.parts["hollow"] == pytest.approx(max(busy, sm) - sm, abs=1e-15)
    assert made.parts["idle"] == pytest.approx(1 - max(busy, sm), abs=1e-15)
    assert made.divergence == max(0.0, busy - sm)
    assert made.utilization == made.parts["working"]
    assert made.limiter is not None
    assert (made.limiter == "none") == (limiter < 0.01)
    if made.limiter != "none":
        assert pipes[made.limiter] == limiter


def test_t4_under_load_without_sm() -> None:
    """Field case 34: utilization 91 %, engine 0.156, tensor 0.0058, DRAM 0.0928."""
    fields = frozenset({"busy", "graphics_engine", "tensor", "dram"})
    made = honest(inputs(fields), {"busy": 0.91, "tensor": 0.005822, "dram": 0.092781})
    assert made is not None
    assert made.utilization == pytest.approx(0.092781)
    assert made.parts == pytest.approx({"working": 0.092781, "unexplained": 0.91 - 0.092781, "idle": 0.09})
    assert made.limiter == "dram"
    assert made.divergence is None  # without sm there is nothing to subtract


def test_trace_without_pipes_has_no_headline() -> None:
    made = honest(inputs(frozenset({"busy", "sm", "sm_occupancy"})), {"busy": 1.0, "sm": 0.0185})
    assert made is not None
    assert made.utilization is None
    assert made.limiter is None
    assert made.parts == pytest.approx({"unexplained": 0.0185, "hollow": 0.9815, "idle": 0.0})


def test_mig_takes_the_engine_for_the_claim_and_has_no_divergence() -> None:
    given_inputs = inputs(frozenset({"busy", "graphics_engine", "sm", "dram"}), mig=True)
    assert given_inputs.claim == "graphics_engine"
    made = honest(given_inputs, {"graphics_engine": 0.9, "sm": 0.5, "dram": 0.25})
    assert made is not None
    assert made.divergence is None
    assert made.parts == pytest.approx({"working": 0.25, "stalled": 0.25, "hollow": 0.4, "idle": 0.1})


def test_without_any_claim_the_rest_is_unexplained_not_idle() -> None:
    made = honest(inputs(frozenset({"sm", "dram"})), {"sm": 0.4, "dram": 0.3})
    assert made is not None
    assert made.parts == pytest.approx({"working": 0.3, "stalled": 0.1, "unexplained": 0.6})


def test_nvml_only_says_busy_but_not_why() -> None:
    made = honest(inputs(frozenset({"busy"})), {"busy": 0.99})
    assert made is not None
    assert made.parts == pytest.approx({"unexplained": 0.99, "idle": 0.01})
    assert made.utilization is None


def test_sm_above_the_claim_is_counted_not_negative() -> None:
    made = honest(inputs(frozenset({"busy", "sm", "dram"})), {"busy": 0.5, "sm": 0.6, "dram": 0.1})
    assert made is not None
    assert made.divergence == 0.0
    assert made.exceeded
