"""Totals over members that come and go: they never fall, and lose nothing that a pass saw."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from exporter.host.account import Amounts, Totals

growth = st.lists(st.dictionaries(st.integers(1, 6), st.integers(0, 1000), max_size=6), max_size=12)


@given(growth)
def test_totals_are_monotonic_and_exact(passes: list[dict[int, int]]) -> None:
    totals, sizes, alive, expected, before = Totals[int](), dict[int, int](), set[int](), 0, Amounts()
    for grown in passes:  # a pid that is missing has ended; one that comes back is a new process
        new = grown.keys() - alive
        for pid in new:
            sizes[pid] = 0
        for pid, more in grown.items():
            sizes[pid] += more
        alive = set(grown)
        expected += sum(grown.values())
        total = totals.feed({pid: Amounts(read=sizes[pid]) for pid in alive}, new)
        assert all(now >= then for now, then in zip(total, before, strict=True))
        assert total.read == expected
        before = total


@given(st.lists(st.floats(0, 1e6), min_size=1), st.booleans())
def test_a_counter_that_falls_does_not_take_anything_back(values: list[float], new: bool) -> None:
    totals, before = Totals[int](), 0.0
    for number, value in enumerate(values):
        total = totals.feed({1: Amounts(cpu=value)}, {1} if new and number == 0 else ())
        assert total.cpu >= before
        before = total.cpu
