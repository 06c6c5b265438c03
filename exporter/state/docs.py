"""Prints docs/states.md from the rules: python -m exporter.state.docs > docs/states.md"""

from __future__ import annotations

from exporter.state.hysteresis import HOLD, LONG, SLACK, STEADY
from exporter.state.rules import RULES, starved_by_trace
from exporter.state.telling import MOST_SAID
from exporter.state.thresholds import reasons

_MEANING = {
    "unallocated": "not allocated; without attribution: no process holds it",
    "allocated_no_process": "a pod or job holds it, but no process uses it",
    "process_idle": "a process holds it, but nothing runs",
    "transfer_bound": "PCIe is busy, but the SMs are not",
    "suspected_hang": "claimed busy at low power, no unit or link active: often a collective waiting for a lost peer",
    "communication_bound": "links or collectives are busy, but tensor cores and memory are not",
    "dram_bound": "memory is at its attainable rate and is the busiest unit",
    "tensor_bound": "tensor cores are at their attainable rate",
    "pipe_bound": "another arithmetic pipe is busy more than half of the time",
    "launch_bound": "the engine is busy, but the SMs are mostly empty: small kernels, launch gaps",
    "input_starved": "busy with gaps, and the host is the cause: a saturated main thread, CPU or storage pressure",
    "latency_bound": "warps are nearly always resident, but no unit is busy: they wait",
    "mixed": "none of these",
}

_WHEN = f"""
## When a state changes

The state is judged by means over {HOLD:g} s (`--state.hold`, H below). The first state is set H after the start. Then:

- A state changes once the mean over H has indicated another one for {STEADY} H ({STEADY * HOLD:g} s). When one steady
  load follows another, the new state appears within {STEADY + 1} H ({(STEADY + 1) * HOLD:g} s), with none in between.
- With a load that comes and goes, the mean over H may not indicate any one state for that long. After {LONG} H
  ({LONG * HOLD:g} s) of this, the mean over {LONG} H decides, and the reason says so. That state lasts for another
  {LONG} H at least, or until the mean over H is steady again.
- A state lasts at least H, and thresholds are relaxed by {SLACK:.0%} for the current one. When an input it depends
  on disappears, `unknown` does not wait for {STEADY} H.

So 20 s on and 40 s off is one state, that of the mean; 5 min on and 5 min off are two alternating states. There is no
"alternating" state: the mean is more informative, for example `input_starved`. Bursts of less than a minute between
longer steady periods do not show in the state, only in the counters. `honest_gpu_state_seconds_total` adds up to the
observed time.

The log has at most {MOST_SAID} lines per hour about one device's state. Further changes are counted, and the next line
gives their number; the inputs that `unknown` lacks are logged once. The metrics have every change.
"""


def page() -> str:
    """The whole page."""
    lines = [
        "# States\n\nFor anyone asking what a state means, or changing a threshold. Generated from the rules "
        "(`make docs`); a test checks that it is current.\n\n"
        "The first rule that holds gives the state. A rule whose inputs are missing neither holds nor fails; if such a "
        "rule comes before the first one that holds, the state is `unknown`: the missing input could have led to "
        "another state. Throttling is reported separately, whatever the state is.\n\n"
        "| order | state | means |\n|---|---|---|\n"
    ]
    order = dict.fromkeys(rule.state.value for rule in RULES if rule.holds is not starved_by_trace)
    for number, state in enumerate(order, start=1):
        lines.append(f"| {number} | `{state}` | {_MEANING[state]} |\n")
    lines.append(
        "\nIf a trace shows the program waiting for its data loader, `input_starved` takes precedence over every state "
        "after number 3.\n"
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
