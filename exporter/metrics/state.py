"""State: what a GPU is doing, in one word."""

from __future__ import annotations

from collections.abc import Iterator

from exporter.core.snapshot import Snapshot
from exporter.metrics.family import DEVICE, Family, Group, Sample, Type, device_labels, join
from exporter.state.rules import State

STATE = Family(
    "state",
    Type.GAUGE,
    "",
    "1 for the current state of the device, after hysteresis; 0 for earlier states; others are absent. "
    "unknown: a deciding input is missing.",
    labels=(*DEVICE, "state"),
)
STATE_SECONDS = Family(
    "state_seconds",
    Type.COUNTER,
    "seconds",
    "Seconds spent in each state.",
    labels=(*DEVICE, "state"),
)
THROTTLED = Family(
    "throttled",
    Type.GAUGE,
    "",
    "1 while clocks are held down for this reason, whatever the state; 0 afterwards; absent if it never happened.",
    labels=(*DEVICE, "reason"),
)


def _collect(snapshot: Snapshot) -> Iterator[Sample]:
    for view in snapshot.entities:
        state, device = view.state, device_labels(view)
        if state is None:
            continue
        if view.present:
            for name in State:
                if name in state.seconds or name is state.verdict.state:
                    yield Sample(STATE, join(device, f'state="{name.value}"'), float(name is state.verdict.state))
            for reason, active in state.throttled.items():
                yield Sample(THROTTLED, join(device, f'reason="{reason}"'), float(active))
        for name in State:
            if name in state.seconds:
                yield Sample(STATE_SECONDS, join(device, f'state="{name.value}"'), state.seconds[name])


GROUP = Group("State", (STATE, STATE_SECONDS, THROTTLED), _collect)
