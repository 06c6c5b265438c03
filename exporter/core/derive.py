"""The honest numbers, as pure functions of the means over one aligned interval. No I/O, no clock.

Every argument is a mean over the same interval, a ratio 0..1, or None where the device does not report it.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

from exporter.fields import PIPES

LIMITER_FLOOR = 0.01  # below 1 % on every pipe nothing limits: the limiter is "none"
EXCESS_TOLERANCE = 0.01  # utilization.gpu comes in whole percent; SM active above it by more than that is counted


class Form(enum.Enum):
    """Which inputs a device reports, and hence how its time can be split; the values are label values."""

    FULL = "full"  # sm and at least one pipe or dram
    NO_SM = "no_sm"  # pipes or dram, but not sm
    NO_PIPES = "no_pipes"  # sm, but neither pipes nor dram
    CLAIM_ONLY = "claim_only"  # only the driver's utilization
    NONE = "none"


@dataclass(frozen=True)
class Inputs:
    """The fields from which a device's parts are computed."""

    form: Form
    claim: str | None  # "busy", or "graphics_engine" standing in for it, or None
    pipes: tuple[str, ...]

    @cached_property
    def required(self) -> frozenset[str]:
        """Fields that must all cover an interval before it is split into parts."""
        sm = ("sm",) if self.form in (Form.FULL, Form.NO_PIPES) else ()
        claim = (self.claim,) if self.claim else ()
        return frozenset((*sm, *claim, *self.pipes))

    @cached_property
    def parts(self) -> tuple[str, ...]:
        """The parts that these inputs can distinguish; no other is ever reported, not even as 0."""
        if self.form is Form.NONE:
            return ()
        measured = {
            Form.FULL: ("working", "stalled"),
            Form.NO_SM: ("working", "unexplained"),
            Form.NO_PIPES: ("unexplained",),
            Form.CLAIM_ONLY: ("unexplained",),
        }[self.form]
        if self.claim is None:
            return measured if "unexplained" in measured else (*measured, "unexplained")
        return (*measured, "hollow", "idle") if "sm" in self.required else (*measured, "idle")


NOTHING = Inputs(Form.NONE, None, ())


@dataclass(frozen=True, slots=True)
class Honest:
    """The honest numbers of one interval; ``parts`` sum to 1."""

    parts: Mapping[str, float]
    utilization: float | None  # the headline: = working
    divergence: float | None  # what the driver claims beyond SM active
    limiter: str | None
    exceeded: bool  # SM active above the claim, beyond rounding


@lru_cache(maxsize=256)  # few different GPUs, asked for each of them in each window
def inputs(fields: frozenset[str], mig: bool = False) -> Inputs:
    """What can be computed from the ``fields`` a device reports. ``mig``: no claim exists, the engine stands in."""
    pipes = tuple(pipe for pipe in PIPES if pipe in fields)
    if "busy" in fields and not mig:
        claim: str | None = "busy"
    else:
        claim = "graphics_engine" if "graphics_engine" in fields else None
    if "sm" in fields:
        form = Form.FULL if pipes else Form.NO_PIPES
    elif pipes:
        form = Form.NO_SM
    else:
        form = Form.CLAIM_ONLY if claim else Form.NONE
    return Inputs(form, claim, pipes)


def honest(given: Inputs, means: Mapping[str, float]) -> Honest | None:
    """The numbers of one interval from the means of ``given.required`` over it; None without any input."""
    if given.form is Form.NONE:
        return None
    claim = means[given.claim] if given.claim else None
    sm = means["sm"] if given.form in (Form.FULL, Form.NO_PIPES) else None
    peak, limiter = max(((means[pipe], pipe) for pipe in given.pipes), key=lambda pair: pair[0], default=(0.0, "none"))
    parts = _parts(given.form, claim, sm, peak)
    compared = claim if given.claim == "busy" else None
    return Honest(
        parts=parts,
        utilization=parts.get("working"),
        divergence=max(0.0, compared - sm) if compared is not None and sm is not None else None,
        limiter=None if not given.pipes else limiter if peak >= LIMITER_FLOOR else "none",
        exceeded=compared is not None and sm is not None and sm > compared + EXCESS_TOLERANCE,
    )


def _parts(form: Form, claim: float | None, sm: float | None, peak: float) -> dict[str, float]:
    """The parts of docs/honest-numbers.md. Without any claim the rest cannot be split either and is unexplained."""
    if form is Form.FULL:
        assert sm is not None
        working = min(sm, peak)
        parts = {"working": working, "stalled": sm - working}
        measured = sm
    elif form is Form.NO_PIPES:
        assert sm is not None
        parts = {"unexplained": sm}
        measured = sm
    else:
        parts = {"working": peak} if form is Form.NO_SM else {}
        measured = peak if form is Form.NO_SM else 0.0
    if claim is None:
        parts["unexplained"] = parts.get("unexplained", 0.0) + 1.0 - measured
        return parts
    claimed = max(claim, measured)
    parts["hollow" if sm is not None else "unexplained"] = claimed - measured
    parts["idle"] = 1.0 - claimed
    return parts
