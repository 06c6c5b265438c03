"""What the sources say and what the devices did, joined once a window."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.attribution.accounting import Accounting
from exporter.attribution.background import AttributionBackground
from exporter.attribution.holdings import Allocations, AttributionError, DriverProcesses, Holding, Sharing, Workload
from exporter.attribution.stage import AttributionStage
from exporter.attribution.view import AttributionView
from exporter.model import Device, Entity, ProcessUse

A, B, SLICE = Entity("GPU-1"), Entity("GPU-2"), Entity("GPU-3", 7)
DEVICES = {entity: Device(entity, str(number)) for number, entity in enumerate((A, B, SLICE))}
POD, OTHER, JOB = Workload("ml", "a", "main"), Workload("ml", "b", "main"), Workload(job_id="7", user="ada")


class Told:
    """A source that says what it is told to; None: it cannot be read."""

    def __init__(self, name: str, holdings: Sequence[Holding] | None, allocatable: frozenset[Entity] | None) -> None:
        self.name, self._holdings, self._allocatable = name, holdings, allocatable

    def read(self, devices: Sequence[Device]) -> Allocations:
        if self._holdings is None:
            raise AttributionError("gone")
        return Allocations(self.name, self._holdings, {}, self._allocatable)

    def close(self) -> None:
        """Nothing is held."""


def source(
    name: str, holdings: Sequence[Holding] | None, allocatable: frozenset[Entity] | None = None
) -> AttributionBackground:
    made = AttributionBackground(Told(name, holdings, allocatable), 10.0, lambda: 0.0, lambda: 0.0)
    made.read()
    return made


def holding(entity: Entity, workload: Workload, sharing: Sharing = Sharing.EXCLUSIVE) -> Holding:
    return Holding(entity, workload, sharing)


def owner(pid: int, holders: Sequence[Workload]) -> Workload | None:
    """Processes 10 to 19 are the first pod's, 20 to 29 the second's, 30 to 39 the job's."""
    who = {1: POD, 2: OTHER, 3: JOB}.get(pid // 10)
    return who if who in holders else None


def update(
    stage: AttributionStage, *processes: ProcessUse, parts: Mapping[str, float] | None = None
) -> AttributionView:
    told = {"working": 0.5, "idle": 0.5} if parts is None else parts
    return stage.update(1.0, {entity: (device, told) for entity, device in DEVICES.items()}, processes)


def test_an_earlier_source_goes_before_a_later_one_device_by_device() -> None:
    """A pod in a cluster that Slurm runs, or a process that its pod's name is already known of."""
    first = source("kubernetes", [holding(A, POD)])
    second = source("processes", [holding(A, Workload(user="root")), holding(B, JOB)])
    view = update(AttributionStage([first, second], Accounting()))
    assert [(each.entity, each.workload) for each in view.holdings] == [(A, POD), (B, JOB)]
    view = update(AttributionStage([second, first], Accounting()))
    assert [(each.entity, each.workload) for each in view.holdings] == [(A, Workload(user="root")), (B, JOB)]


def test_a_source_that_cannot_be_read_leaves_it_to_the_others() -> None:
    stage = AttributionStage([source("kubernetes", None), source("slurm", [holding(B, JOB)])], Accounting())
    view = update(stage)
    assert [(each.name, each.up) for each in view.sources] == [("kubernetes", False), ("slurm", True)]
    assert (view.allocated(B), view.allocated(A)) == (True, None)  # a pod may hold the other one


def test_the_driver_s_processes_are_left_for_a_source_that_looks_them_up() -> None:
    driver = DriverProcesses()
    assert list(driver()) == [], "it may be asked before the first window"
    update(AttributionStage([], Accounting(), driver=driver), ProcessUse(A, 10), ProcessUse(B, 20))
    assert list(driver()) == [(A, 10), (B, 20)]


def test_holders_of_devices_that_are_not_here_are_left_out() -> None:
    gone = Entity("GPU-gone")
    view = update(AttributionStage([source("slurm", [holding(gone, JOB), holding(A, JOB)])], Accounting()))
    assert [each.entity for each in view.holdings] == [A]
    assert gone not in view.unattributed


def test_memory_and_processes_of_a_workload_over_all_its_devices() -> None:
    held = [holding(A, POD), holding(SLICE, POD, Sharing.MIG), holding(B, JOB)]
    view = update(
        AttributionStage([source("kubernetes", held)], Accounting(), owner),
        ProcessUse(A, 10, 4e9, 0.5),
        ProcessUse(A, 11, None, None),
        ProcessUse(SLICE, 12, 1e9),
        ProcessUse(A, 35, 8e9, 0.5),  # the job does not hold this one
        ProcessUse(B, 20, 8e9),  # nor the second pod any
    )
    found = {each.workload: (each.memory_bytes, each.processes) for each in view.workloads}
    assert found == {POD: (5e9, 3), JOB: (None, None)}


def test_shared_time_is_split_by_samples_and_no_sample_is_not_zero() -> None:
    held = [holding(A, POD, Sharing.TIME_SLICED), holding(A, OTHER, Sharing.TIME_SLICED)]
    stage = AttributionStage([source("kubernetes", held)], Accounting(), owner)
    view = update(stage, ProcessUse(A, 10, sm=0.2), ProcessUse(A, 11, sm=0.2), ProcessUse(A, 20, sm=None))
    parts = {each.workload: dict(each.parts) for each in view.workloads}
    assert parts[POD] == pytest.approx({"working": 0.4, "idle": 0.0})  # 0.4 of 0.5 active, of 0.5 seconds
    assert parts[OTHER] == {}
    assert view.unattributed[A] == pytest.approx({"working": 0.1, "idle": 0.5})


def test_a_restart_of_everything_at_once_has_nobodys_time() -> None:
    view = AttributionStage([], Accounting()).update(1.0, {}, None)
    assert (view.holdings, view.workloads, view.unattributed, view.processes) == ((), (), {}, None)


def test_what_may_be_handed_out_is_the_word_of_whoever_tells() -> None:
    stage = AttributionStage([source("slurm", []), source("kubernetes", [], frozenset({A}))], Accounting())
    assert update(stage).allocatable == frozenset({A})
    assert update(AttributionStage([source("slurm", [])], Accounting())).allocatable is None


uses = st.lists(
    st.builds(
        ProcessUse,
        st.sampled_from([A, B, SLICE, Entity("GPU-gone")]),
        st.integers(0, 49),
        st.none() | st.floats(0, 1e12),
        st.none() | st.floats(0, 1),
    ),
    max_size=12,
)
holders = st.lists(
    st.builds(
        Holding,
        st.sampled_from([A, B, SLICE, Entity("GPU-gone")]),
        st.sampled_from([POD, OTHER, JOB]),
        st.sampled_from(list(Sharing)),
    ),
    max_size=8,
)
grown = st.dictionaries(st.sampled_from(["working", "stalled", "hollow", "idle"]), st.floats(0, 10), max_size=4)


@given(st.lists(st.tuples(holders, uses, grown), min_size=1, max_size=5))
def test_holders_and_nobody_are_the_devices_whatever_is_said(
    windows: list[tuple[list[Holding], list[ProcessUse], dict[str, float]]],
) -> None:
    accounting, totals = Accounting(keep=1e9), dict.fromkeys(("working", "stalled", "hollow", "idle"), 0.0)
    view = AttributionView()
    for number, (held, used, more) in enumerate(windows):
        totals = {part: seconds + more.get(part, 0.0) for part, seconds in totals.items()}
        stage = AttributionStage([source("any", held)], accounting, owner)
        view = stage.update(number, {entity: (device, totals) for entity, device in DEVICES.items()}, used)
    for part, seconds in totals.items():
        told = sum(each.parts.get(part, 0.0) for each in view.workloads)
        told += sum(parts.get(part, 0.0) for parts in view.unattributed.values())
        assert told == pytest.approx(len(DEVICES) * seconds)
