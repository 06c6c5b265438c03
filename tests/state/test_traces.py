"""States of real traces, played in a loop."""

from __future__ import annotations

from exporter.sources.replay.opening import open_replay
from exporter.state.rules import State
from tests.data import capture
from tests.state.test_workloads import played


def found(name: str) -> list[State]:
    snapshot = played(open_replay(capture(f"traces/{name}"), loop=True), 120)
    return [view.state.verdict.state for view in snapshot.entities if view.state]


def test_a_resnet_that_waits_for_its_loader_is_input_starved() -> None:
    assert found("rtx2080ti_resnet_input_bound.json.gz") == [State.INPUT_STARVED]


def test_a_dlrm_step_is_communication_bound_on_every_rank() -> None:
    assert found("v100x8_dlrm_8ranks.tar.gz") == [State.COMMUNICATION_BOUND] * 8
