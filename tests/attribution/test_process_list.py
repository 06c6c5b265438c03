"""Which processes have series of their own."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from exporter.attribution.stage import list_processes
from exporter.model import Entity, ProcessUse

A, INSTANCE = Entity("GPU-1"), Entity("GPU-2", 7)


def test_the_lowest_ids_of_each_device_and_the_rest_counted() -> None:
    uses = [ProcessUse(A, pid, 1.0 * pid, 0.5) for pid in (30, 10, 20)] + [ProcessUse(INSTANCE, 40)]
    listed = list_processes(uses, lambda pid: {10: "python", 40: "sleep"}.get(pid, ""), 2)
    assert [(each.entity, each.pid, each.command) for each in listed.shown] == [
        (A, 10, "python"),
        (A, 20, ""),
        (INSTANCE, 40, "sleep"),
    ]
    assert listed.left_off == {A: 1, INSTANCE: 0}
    assert (listed.shown[0].memory_bytes, listed.shown[0].sm) == (10.0, 0.5)
    assert (listed.shown[2].memory_bytes, listed.shown[2].sm) == (None, None)


uses_of = st.lists(
    st.builds(
        ProcessUse,
        st.sampled_from([A, INSTANCE, Entity("GPU-3")]),
        st.integers(1, 50),
        st.none() | st.floats(0, 1e12),
        st.none() | st.floats(0, 1),
    ),
    max_size=40,
    unique_by=lambda use: (use.entity, use.pid),
)


@given(uses_of, st.integers(1, 8))
def test_never_more_than_asked_for_and_none_is_lost(uses: list[ProcessUse], most: int) -> None:
    listed = list_processes(uses, str, most)
    for entity in {use.entity for use in uses}:
        shown = [each.pid for each in listed.shown if each.entity == entity]
        assert len(shown) <= most
        assert len(shown) + listed.left_off[entity] == sum(use.entity == entity for use in uses)
    assert listed == list_processes(list(reversed(uses)), str, most)  # not by the order in which the driver lists them
    busier = [use._replace(sm=1.0, memory_bytes=0.0) for use in uses]
    again = list_processes(busier, str, most)
    assert [each.pid for each in again.shown] == [each.pid for each in listed.shown]  # nor by what they use
