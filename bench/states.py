"""Confusion matrix of the state rules over simulations with noise (10 %), lost samples (5 %), for several seeds."""

from __future__ import annotations

from collections import Counter

from exporter.sources.simulated.source import simulated_source
from tests.state.test_workloads import Noisy, played, states

SEEDS = range(5)
SECONDS = 600

if __name__ == "__main__":
    seen: dict[str, Counter[str]] = {}
    wanted: dict[str, str] = {}
    for seed in SEEDS:
        for name, expected, view in states(played(Noisy(simulated_source((), 12, loop=True), seed), SECONDS)):
            wanted[name] = expected.value
            assert view.state is not None
            for state, seconds in view.state.seconds.items():
                seen.setdefault(name, Counter())[state.value] += round(seconds)
    print("| workload | expected | seconds in each state | right, without the first 30 s |\n|---|---|---|---|")
    for name, counts in seen.items():
        known = sum(counts.values()) - 29 * len(SEEDS)
        right = counts[wanted[name]] - (29 * len(SEEDS) if wanted[name] == "unknown" else 0)
        text = ", ".join(f"{state} {seconds}" for state, seconds in counts.most_common())
        print(f"| {name} | {wanted[name]} | {text} | {right / known:.1%} |")
