"""The range check every value passes before anything is computed from it (docs/architecture.md, invariants 1 and 2)."""

from __future__ import annotations

import math

from exporter.fields import FIELDS, Kind
from exporter.model import Absence, Reading


def check(reading: Reading) -> Reading:
    """The reading itself, or the same one without a value and with the reason of its rejection.

    Ratios between 1 and fields.ROUNDING count as 1; nothing else is changed.
    """
    value = reading.value
    if value is None:
        return reading if reading.absence is not None else reading._replace(absence=Absence.NO_DATA)
    spec = FIELDS[reading.field]
    if not math.isfinite(value):
        return reading._replace(value=None, absence=Absence.NOT_A_NUMBER)
    if not spec.low <= value <= spec.high:
        return reading._replace(value=None, absence=Absence.OUT_OF_RANGE)
    if reading.start is not None and reading.start >= reading.end:
        return reading._replace(value=None, absence=Absence.OVERLAP)
    if spec.kind is Kind.RATIO and value > 1.0:
        return reading._replace(value=1.0)
    return reading


REJECTIONS = frozenset(
    {Absence.NOT_A_NUMBER, Absence.OUT_OF_RANGE, Absence.OVERLAP, Absence.STALE, Absence.CONTRADICTED}
)
"""Absences that mean 'a value came and was refused'; the others mean that none came."""
