"""Series of single processes: for whoever asks, bounded, and never more than the driver tells."""

from __future__ import annotations

from dataclasses import replace

import pytest
from prometheus_client.parser import text_string_to_metric_families as parse_text

from exporter.attribution.view import ProcessList, ProcessView
from exporter.exposition import Rendered
from exporter.metrics import single_processes
from exporter.metrics.catalogue import Selection, groups, samples
from exporter.metrics.family import Profile
from exporter.metrics.own import OwnState
from exporter.model import Entity, ProcessUse
from tests.metrics.whose import BOARD, SLICE, WHOLE, Told, Whose, series

USES = (ProcessUse(WHOLE, 10, 4e9, 0.25), ProcessUse(WHOLE, 11, 1e9), ProcessUse(SLICE, 12, 2e9))
OF = 'gpu="0",uuid="GPU-1"'
ON = 'gpu="1",uuid="GPU-2",gpu_instance="7"'


def test_nothing_by_default() -> None:
    assert series(Whose(Told(())).window(USES), single_processes.GROUP) == {}


def test_memory_and_use_as_far_as_the_driver_tells() -> None:
    found = series(Whose(Told(()), {10: "python", 12: "train"}).window(USES), single_processes.GROUP)
    assert found == {
        f'honest_gpu_process_memory_bytes{{{OF},pid="10",command="python"}}': 4e9,
        f'honest_gpu_process_sm_ratio{{{OF},pid="10",command="python"}}': 0.25,
        f'honest_gpu_process_memory_bytes{{{OF},pid="11"}}': 1e9,  # no fresh sample: that is not 0
        f'honest_gpu_process_memory_bytes{{{ON},pid="12",command="train"}}': 2e9,  # MIG: no sample at all
        f"honest_gpu_processes_left_off{{{OF}}}": 0,
        f"honest_gpu_processes_left_off{{{ON}}}": 0,
    }


def test_a_source_that_does_not_know_of_processes() -> None:
    assert series(Whose(Told(()), {}).window(None), single_processes.GROUP) == {}


def test_they_are_bounded_and_the_rest_is_counted() -> None:
    uses = [ProcessUse(WHOLE, pid, 1.0, 0.1) for pid in range(1000, 0, -1)]
    found = series(Whose(Told(()), {}, most=3).window(uses), single_processes.GROUP)
    assert sorted(found) == sorted(
        [f'honest_gpu_process_{what}{{{OF},pid="{pid}"}}' for what in ("memory_bytes", "sm_ratio") for pid in (1, 2, 3)]
        + [f"honest_gpu_processes_left_off{{{OF}}}"]
    )
    assert found[f"honest_gpu_processes_left_off{{{OF}}}"] == 997


def test_they_end_with_their_process_and_with_their_device() -> None:
    node = Whose(Told(()), {})
    assert series(node.window(USES), single_processes.GROUP)
    left = series(node.window(USES[2:]), single_processes.GROUP)
    assert not any(OF in each for each in left)
    node.devices = node.devices[:1]  # the instance is destroyed, and the driver still names its process
    assert series(node.window(USES[2:]), single_processes.GROUP) == {}


@pytest.mark.parametrize("entity", [BOARD, Entity("GPU-of-nobody"), Entity("GPU-1", 3)])
def test_one_on_a_device_that_is_none_costs_nothing(entity: Entity) -> None:
    """A board that is cut into instances has no processes of its own."""
    found = series(Whose(Told(()), {}).window([ProcessUse(entity, 5, 1.0, 0.5), *USES]), single_processes.GROUP)
    assert not any('pid="5"' in each for each in found)
    assert len(found) == 6


def test_a_list_of_other_devices_does_not_cost_the_page() -> None:
    snapshot = Whose(Told(()), {}).window(USES)
    assert snapshot.attribution is not None
    strange = ProcessList((ProcessView(Entity("GPU-of-nobody"), 5, "x", 1.0, 0.5),), {Entity("GPU-of-nobody"): 0})
    other = replace(snapshot, attribution=replace(snapshot.attribution, processes=strange))
    assert series(other, single_processes.GROUP) == {}


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("a\nb\x1b[31m\x00\x7f", "a?b?[31m??"),
        ('say "hi" \\ x', 'say "hi" \\ x'),
        ("\u202eevil\udc80", "?evil?"),
        ("学習", "学習"),
        ("x" * 500, "x" * 64),
        ("", None),
    ],
)
def test_names_of_commands_cannot_break_the_page(command: str, shown: str | None) -> None:
    """A process writes what it likes into its name."""
    snapshot = Whose(Told(()), {10: command}).window(USES[:1])
    rendered = Rendered(snapshot, lambda taken: samples(taken, groups(OwnState()), Selection(Profile.FULL)))
    text = rendered.get((False, False)).decode()
    found = [
        sample.labels.get("command")
        for family in parse_text(text)
        for sample in family.samples
        if sample.name == "honest_gpu_process_sm_ratio"
    ]
    assert found == [shown]
