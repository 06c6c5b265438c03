"""Pieces of PromQL that several panels share. Means are exact: a counter's rate over the rate of its denominator."""

from __future__ import annotations

CLUSTER = 'cluster=~"$cluster"'
"""The choice at the top of every dashboard."""

DEVICE = "job, instance, gpu, uuid, gpu_instance"
"""What names one device in Prometheus."""

WINDOW = "[$__rate_interval]"
STEPS = "[$__range:5m]"
"""For series of rules that look back 5 minutes: such steps cover the range without overlap, and cost little."""

HOURS = 12
"""Such steps an hour."""


def selector(name: str, *matchers: str) -> str:
    """``name{matcher, ...}``."""
    return f"{name}{{{', '.join(matcher for matcher in matchers if matcher)}}}"


def rates(counter: str, matchers: str, by: str, extra: str = "", only: str = "") -> str:
    """The sum of rates ``by`` labels; ``only``: what the series are filtered with, such as ``and on (...) x``."""
    return f"sum by ({by}) (rate({selector(counter, matchers, extra)}{WINDOW}){only})"


def share(counter: str, of: str, matchers: str, by: str = DEVICE, extra: str = "", only: str = "") -> str:
    """The mean of what ``counter`` counts, 0..1, over the time for which ``of`` was observed.

    ``by`` may name the label part, which the denominator has not: it is matched around.
    """
    labels = by.split(", ")
    common = ", ".join(label for label in labels if label != "part")
    below = rates("honest_gpu_observed_seconds_total", matchers, common, f'of="{of}"', only)
    divided = "/ ignoring (part) group_left ()" if "part" in labels else "/"
    return f"{rates(counter, matchers, by, extra, only)} {divided} {below}"


def portion(counter: str, by: str, matchers: str, only: str = "") -> str:
    """What each value of the label ``by`` has of all of them, 0..1: of those devices that have the counter."""
    rate = f"rate({selector(counter, matchers)}{WINDOW}){only}"
    return f"sum by ({by}) ({rate}) / ignoring ({by}) group_left () sum({rate})"


def hours(recorded: str) -> str:
    """Hours that a recorded rate, in GPUs, makes over the time range. A gap in it counts nothing."""
    return f"sum_over_time({recorded}{STEPS}) / {HOURS}"
