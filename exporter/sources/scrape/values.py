"""From a printed value to a number, or to the reason why there is none: the test for blanks, before any scaling."""

from __future__ import annotations

import math
from collections.abc import Mapping

from exporter.fields import FP64_BLANK, INT32_BLANK, INT64_BLANK
from exporter.model import Absence
from exporter.trust import blank_reason

# dcgm_structs.h: DCGM_STR_*
_STRINGS: Mapping[str, Absence] = {
    "<<<NULL>>>": Absence.BLANK,
    "<<<NOT_FOUND>>>": Absence.NOT_FOUND,
    "<<<NOT_SUPPORTED>>>": Absence.NOT_SUPPORTED,
    "<<<NOT_PERM>>>": Absence.NOT_PERMITTED,
}
_INT_DIGITS = 20  # of the largest 64-bit integers


def number(printed: str) -> float | Absence:
    """A finite number as printed, in the exporter's unit, or why it is none.

    Blanks of int64, int32 and double fields count in every field: no value of the catalogue comes near 1.4e14, and the
    exporter's int64 fields hold int32 blanks too. An int64 blank that was printed as a float has lost its reason.
    """
    if printed.startswith("<"):
        return _STRINGS.get(printed, Absence.BLANK)
    value = float(printed)
    if not math.isfinite(value):
        return Absence.NOT_A_NUMBER
    if value >= INT64_BLANK and len(printed) <= _INT_DIGITS and printed.isdecimal():
        return blank_reason(int(printed) - INT64_BLANK)
    if value >= FP64_BLANK:
        return blank_reason(value - FP64_BLANK)
    if INT32_BLANK <= value <= INT32_BLANK + 3 and value.is_integer():
        return blank_reason(value - INT32_BLANK)
    return value
