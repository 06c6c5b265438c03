"""Running sums give what a look at the whole window would give."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.state.rolling import BUCKET, Rolling

samples = st.lists(
    st.tuples(st.floats(BUCKET, 5), st.dictionaries(st.sampled_from("abc"), st.floats(0, 1))), min_size=1, max_size=40
)


@given(samples)
def test_as_a_look_at_the_whole_window(script: list[tuple[float, dict[str, float]]]) -> None:
    rolling, end, kept = Rolling(10.0), 0.0, list[tuple[float, float, dict[str, float]]]()
    for seconds, values in script:
        end += seconds
        assert rolling.add(end, seconds, values)
        kept.append((end, seconds, values))
        live = [entry for entry in kept if entry[0] > end - 10.0]
        whole = sum(s for _, s, _ in live)
        for name in "abc":
            known = [(s, v[name]) for _, s, v in live if name in v]
            covered = sum(s for s, _ in known)
            if covered and abs(covered - whole / 2) > 1e-6:
                expected = sum(s * v for s, v in known) / covered if covered >= whole / 2 else None
                assert rolling.means().get(name) == (None if expected is None else pytest.approx(expected, abs=1e-6))


def test_fast_samples_are_put_together() -> None:
    rolling = Rolling(10.0)
    moved = [rolling.add((n + 1) / 10, 0.1, {"a": float(n % 2)}) for n in range(20)]
    assert sum(moved) == 2
    assert rolling.means()["a"] == pytest.approx(0.5, abs=0.06)
