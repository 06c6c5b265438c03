"""Prints docs/states.md from the rules: python -m exporter.state.docs > docs/states.md"""

from __future__ import annotations

from exporter.state.hysteresis import HOLD, LONG, SLACK, STEADY
from exporter.state.rules import RULES, told_starved
from exporter.state.telling import MOST_SAID
from exporter.state.thresholds import reasons

_MEANING = {
    "unallocated": "nobody holds it; without attribution: no process holds it",
    "allocated_no_process": "a pod or job holds it, no process uses it",
    "process_idle": "a process holds it, nothing runs",
    "transfer_bound": "PCIe is busy, the SMs are not",
    "suspected_hang": "claimed busy at low power, no unit or link active: often a collective waiting for a lost peer",
    "communication_bound": "links or collectives are busy, tensor cores and memory are not",
    "dram_bound": "memory is at its attainable rate and is the busiest unit",
    "tensor_bound": "tensor cores are at their attainable rate",
    "pipe_bound": "another arithmetic pipe is busy more than half of the time",
    "launch_bound": "the engine is busy, the SMs are mostly empty: small kernels, launch gaps",
    "input_starved": "busy with gaps, and the host is the reason: a pegged main thread, CPU or storage pressure",
    "latency_bound": "warps are nearly always resident, no unit is busy: they wait",
    "mixed": "none of these",
}

_WHEN = f"""
## When a state changes

Evidence is the mean over {HOLD:g} s (`--state.hold`, H below). The first state is named H after the start. Then:

- A state is left once the mean over H has named another for {STEADY} H ({STEADY * HOLD:g} s). When one steady load
  follows another, its state comes within {STEADY + 1} H ({(STEADY + 1) * HOLD:g} s), and none in between.
- A load that comes and goes may let the mean over H name nothing for that long. After {LONG} H ({LONG * HOLD:g} s) of
  this, the mean over {LONG} H names the state, and its reason says so. It is left after another {LONG} H at the
  earliest, or when the mean over H is steady again.
- A state lasts H at least, and limits are eased by {SLACK:.0%} for the one that is held. When an input that it rests
  on is gone, `unknown` does not wait for {STEADY} H.

So 20 s on and 40 s off is one state, that of the mean, and 5 min on and 5 min off are two that take turns. There is no
state for "alternating": the mean says more, `input_starved` for instance. Bursts of less than a minute between longer
steady stretches do not show in the state; the counters have them. `honest_gpu_state_seconds_total` adds up to the time
observed.

The log has at most {MOST_SAID} lines an hour about one device's state. Changes that are not written are counted, the
next line gives their number, and what `unknown` lacks is said once; the metrics have every change.
"""


def page() -> str:
    """The whole page."""
    lines = [
        "# States\n\nFor whoever asks what a state means or wants another threshold. Generated from the rules "
        "(`make docs`); a test holds that it is current.\n\n"
        "The first rule that holds names the state. A rule whose inputs are missing neither holds nor fails; when one "
        "of them comes before the first that holds, the state is `unknown`: the missing input could have decided "
        "otherwise. Throttling is a flag of its own, whatever the state is.\n\n"
        "| order | state | means |\n|---|---|---|\n"
    ]
    order = dict.fromkeys(rule.state.value for rule in RULES if rule.holds is not told_starved)
    for number, state in enumerate(order, start=1):
        lines.append(f"| {number} | `{state}` | {_MEANING[state]} |\n")
    lines.append(
        "\nA trace in which the program waits for its data loader is `input_starved` before all that follows 3.\n"
    )
    lines.append(_WHEN)
    lines.append(
        "\n## Thresholds\n\nAll are ratios of means over the window; `--state.threshold NAME=RATIO` changes one.\n\n"
        "| name | default | why |\n|---|---|---|\n"
    )
    lines += [f"| `{name}` | {value:g} | {why} |\n" for name, (value, why) in reasons().items()]
    return "".join(lines)


if __name__ == "__main__":
    print(page(), end="")
