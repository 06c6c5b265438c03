"""Prints docs/states.md from the rules: python -m exporter.state.docs > docs/states.md"""

from __future__ import annotations

from exporter.state.hysteresis import HOLD, SLACK
from exporter.state.rules import RULES, told_starved
from exporter.state.thresholds import reasons

_MEANING = {
    "unallocated": "nobody holds it; without attribution: no process holds it",
    "allocated_no_process": "a pod or job holds it, no process uses it",
    "process_idle": "a process holds it, nothing runs",
    "transfer_bound": "PCIe is busy, the SMs are not",
    "stalled": "claimed busy at low power, no unit and no link moves: often a collective that waits for a lost peer",
    "communication_bound": "links or collectives are busy, tensor cores and memory are not",
    "dram_bound": "memory is at its attainable rate and is the busiest unit",
    "tensor_bound": "tensor cores are at their attainable rate",
    "pipe_bound": "another arithmetic pipe is busy more than half of the time",
    "launch_bound": "the engine is busy, the SMs are mostly empty: small kernels, launch gaps",
    "input_starved": "busy with gaps, and the host is the reason: a pegged main thread, CPU or storage pressure",
    "latency_bound": "warps are nearly always resident, no unit is busy: they wait",
    "mixed": "none of these",
}


def page() -> str:
    """The whole page."""
    lines = [
        "# States\n\nFor whoever asks what a state means or wants another threshold. Generated from the rules "
        "(`make docs`); a test holds that it is current.\n\n"
        "The first rule that holds names the state. A rule whose inputs are missing neither holds nor fails; when one "
        "of them comes before the first that holds, the state is `unknown`: the missing input could have decided "
        f"otherwise. Evidence is the mean over {HOLD:g} s (`--state.hold`), a state is held at least that long, and "
        f"for the state that is held limits are eased by {SLACK:.0%}. Throttling is a flag of its own, whatever the "
        "state is.\n\n| order | state | means |\n|---|---|---|\n"
    ]
    order = dict.fromkeys(rule.state.value for rule in RULES if rule.holds is not told_starved)
    for number, state in enumerate(order, start=1):
        lines.append(f"| {number} | `{state}` | {_MEANING[state]} |\n")
    lines.append(
        "\nA trace in which the program waits for its data loader is `input_starved` before all that follows 3.\n"
    )
    lines.append(
        "\n## Thresholds\n\nAll are ratios of means over the window; `--state.threshold NAME=RATIO` changes one.\n\n"
        "| name | default | why |\n|---|---|---|\n"
    )
    lines += [f"| `{name}` | {value:g} | {why} |\n" for name, (value, why) in reasons().items()]
    return "".join(lines)


if __name__ == "__main__":
    print(page(), end="")
