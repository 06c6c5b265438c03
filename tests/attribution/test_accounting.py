"""GPU-seconds by workload: nothing is invented, nothing is lost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.attribution.accounting import Accounting
from exporter.attribution.holdings import Holding, Sharing, Workload
from exporter.model import Entity

GPU, OTHER = Entity("GPU-1"), Entity("GPU-2", 3)
A, B = Workload(namespace="ml", pod="a", container="main"), Workload(job_id="7", user="ann")
PARTS = ("working", "stalled", "hollow", "idle")


def held(workload: Workload, entity: Entity = GPU, sharing: Sharing = Sharing.EXCLUSIVE) -> Holding:
    return Holding(entity, workload, sharing)


def test_an_exclusive_holder_takes_all_of_its_device() -> None:
    books = Accounting()
    books.book(1.0, {GPU: {"working": 0.25, "idle": 0.75}}, [held(A)], {})
    assert books.workloads[A].parts == {"working": 0.25, "idle": 0.75}
    assert books.unattributed[GPU] == {"working": 0.0, "idle": 0.0}


def test_time_before_a_holder_came_is_not_its_own() -> None:
    books = Accounting()
    books.book(1.0, {GPU: {"idle": 10.0}}, [], {})
    books.book(2.0, {GPU: {"idle": 11.0}}, [held(A)], {})
    assert books.workloads[A].parts == {"idle": 1.0}
    assert books.unattributed[GPU] == {"idle": 10.0}


def test_sharers_are_split_by_their_samples_and_idle_time_is_nobodys() -> None:
    books = Accounting()
    shared = [held(A, sharing=Sharing.TIME_SLICED), held(B, sharing=Sharing.TIME_SLICED)]
    books.book(1.0, {GPU: {"working": 0.4, "stalled": 0.4, "idle": 0.2}}, shared, {GPU: {A: 0.6, B: 0.2}})
    assert books.workloads[A].parts == pytest.approx({"working": 0.3, "stalled": 0.3, "idle": 0.0})
    assert books.workloads[B].parts == pytest.approx({"working": 0.1, "stalled": 0.1, "idle": 0.0})
    assert books.unattributed[GPU] == pytest.approx({"working": 0.0, "stalled": 0.0, "idle": 0.2})


def test_no_sample_is_not_zero() -> None:
    books = Accounting()
    books.book(1.0, {GPU: {"working": 1.0}}, [held(A), held(B)], {GPU: {A: 0.5}})
    assert books.workloads[A].parts == {"working": 0.5}
    assert B in books.workloads
    assert books.workloads[B].parts == {}
    assert books.unattributed[GPU] == {"working": 0.5}


def test_counters_outlive_their_workload_for_a_while_and_are_bounded() -> None:
    books = Accounting(keep=300.0, most=3)
    books.book(0.0, {GPU: {"working": 1.0}}, [held(A)], {})
    books.book(300.0, {GPU: {"working": 2.0}}, [], {})
    assert A in books.workloads
    books.book(301.0, {GPU: {"working": 2.0}}, [], {})
    assert A not in books.workloads
    for number in range(10):
        books.book(302.0 + number, {GPU: {"working": 2.0}}, [held(Workload(job_id=str(number)))], {})
    assert [workload.job_id for workload in books.workloads] == ["7", "8", "9"]


workloads = st.sampled_from([A, B, Workload(pod="c"), Workload(pod="d")])
growths = st.lists(st.floats(0, 100), min_size=4, max_size=4)
steps = st.lists(
    st.tuples(
        st.dictionaries(st.sampled_from([GPU, OTHER]), growths, min_size=1),
        st.lists(st.builds(held, workloads, st.sampled_from([GPU, OTHER])), max_size=6),
        st.dictionaries(st.sampled_from([GPU, OTHER]), st.dictionaries(workloads, st.floats(0, 1))),
    ),
    max_size=8,
)


@given(steps)
def test_holders_and_unattributed_equal_the_device(
    script: list[tuple[dict[Entity, list[float]], list[Holding], dict[Entity, dict[Workload, float]]]],
) -> None:
    books = Accounting(keep=1e9)
    totals = {entity: dict.fromkeys(PARTS, 0.0) for entity in (GPU, OTHER)}
    for now, (grown, holdings, shares) in enumerate(script):
        for entity, seconds in grown.items():
            for part, more in zip(PARTS, seconds, strict=True):
                totals[entity][part] += more
        books.book(float(now), totals, holdings, shares)
    for part in PARTS:
        device = sum(parts[part] for parts in totals.values())
        holders = sum(workload.parts.get(part, 0.0) for workload in books.workloads.values())
        rest = sum(parts.get(part, 0.0) for parts in books.unattributed.values())
        assert holders + rest == pytest.approx(device, rel=1e-9, abs=1e-9)
        assert all(seconds >= 0 for workload in books.workloads.values() for seconds in workload.parts.values())
