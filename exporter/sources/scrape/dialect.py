"""Reads families and values: which field a family is, in which unit, and the number that was printed.

The name decides on field and unit, and HELP if it names another unit.

Three vocabularies are in use (NVIDIA/DCGM dcgm_fields.h; releases of NVIDIA/dcgm-exporter):
the old names in percent, MiB, mJ and MHz; from DCGM 4.6 new names for the same ids and units; from dcgm-exporter 4.9
(DCGM 4.7) names of fields in base units: ratio, bytes, joules, hertz. All of them are in ``FIELDS[...].names``,
oldest first.

``DCGM_FI_PROF_*`` have one unit each, whatever HELP and TYPE say: default files called ratios "(in %)" and byte rates
"total number of bytes", type counter (field cases 37, 38). ``DCGM_FI_DEV_GPU_UTIL_RATIO`` is percent in DCGM 4.6 and a
ratio from 4.7 on: where HELP does not state it, the format does: the one is an integer, the other has decimals.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from exporter.fields import FIELDS, FP64_BLANK, INT32_BLANK, INT64_BLANK
from exporter.model import Absence
from exporter.trust import blank_reason


class UnknownUnitError(Exception):
    """The unit of a family is not known; the message has the reason."""


@dataclass(frozen=True, slots=True)
class Scale:
    """Converts a unit to the base unit. A quotient, so that 91 % is exactly 0.91."""

    times: int
    by: int = 1

    def __call__(self, value: float) -> float:
        return value * self.times / self.by


@dataclass(frozen=True, slots=True)
class Meaning:
    """The field and unit of a family. ``rank``: position in the field's names; a later name is more exact."""

    field: str
    rank: int
    scale: Scale


BASE = Scale(1)
_PERCENT, _MILLI, _MEGA, _MEBI = Scale(1, 100), Scale(1, 1000), Scale(10**6), Scale(1 << 20)

# by the unit of the field: what the old names are in
_OLD: Mapping[str, Scale] = {"ratio": _PERCENT, "bytes": _MEBI, "joules": _MILLI, "hertz": _MEGA}
# by the unit of the field: how HELP texts name units; DCGM's own texts write MB where they mean MiB
_SPELLINGS: Mapping[str, Mapping[str, Scale]] = {
    "ratio": {"%": _PERCENT, "percent": _PERCENT, "percentage": _PERCENT, "ratio": BASE, "fraction": BASE},
    "bytes": {"MiB": _MEBI, "MB": _MEBI, "KiB": Scale(1 << 10), "GiB": Scale(1 << 30), "B": BASE, "bytes": BASE},
    "joules": {"mJ": _MILLI, "millijoules": _MILLI, "J": BASE, "joules": BASE},
    "hertz": {"MHz": _MEGA, "kHz": Scale(10**3), "GHz": Scale(10**9), "Hz": BASE, "hertz": BASE},
    "watts": {"mW": _MILLI, "W": BASE, "watts": BASE},
    "celsius": {"C": BASE, "°C": BASE, "celsius": BASE, "degrees c": BASE, "degrees celsius": BASE},
}
_SUFFIXES = ("_RATIO", "_BYTES", "_JOULES_TOTAL", "_HERTZ", "_WATTS", "_CELSIUS")
_AMBIGUOUS = "DCGM_FI_DEV_GPU_UTIL_RATIO"
_PROFILING = "DCGM_FI_PROF_"
_STATED = re.compile(r"\(\s*in\s([^()]+)\)")  # no two quantifiers side by side: linear in time, as in text.py
_WORD = re.compile(r"[A-Za-z°]+|%")
_NAMES: Mapping[str, tuple[str, int]] = {
    name: (field, rank) for field, spec in FIELDS.items() for rank, name in enumerate(spec.names)
}


def meaning(name: str, help_text: str, printed: Iterable[str]) -> Meaning | None:
    """What the family ``name`` is; None when it is no field of the catalogue.

    ``printed``: its values as printed. Raises UnknownUnitError when name, HELP and printing do not decide on a unit.
    """
    known = _NAMES.get(name)
    if known is None:
        return None
    field, rank = known
    unit = FIELDS[field].unit
    if name.startswith(_PROFILING) or unit not in _SPELLINGS:
        return Meaning(field, rank, BASE)
    stated_scale = _stated_scale(help_text, unit)
    if name == _AMBIGUOUS:
        return Meaning(field, rank, _by_format(stated_scale, printed))
    if name.endswith(_SUFFIXES):
        if stated_scale not in (None, BASE):
            raise UnknownUnitError(f"its name says {unit}, its HELP says {help_text!r}")
        return Meaning(field, rank, BASE)
    return Meaning(field, rank, stated_scale or _OLD.get(unit, BASE))


def _stated_scale(help_text: str, unit: str) -> Scale | None:
    """The scale that a HELP text names, None when it names none. Single letters count only as ``(in X)``."""
    spellings = _SPELLINGS[unit]
    found = [text.strip() for text in _STATED.findall(help_text)]
    stated = [text if text in spellings else text.lower() for text in found]
    unknown = [text for text in stated if text not in spellings]
    if unknown:
        raise UnknownUnitError(f"its HELP says (in {unknown[0]}), which is not a known unit of {unit}")
    words = [word for word in _WORD.findall(_STATED.sub(" ", help_text)) if len(word) > 1 or word == "%"]
    named = [word if len(word) <= 3 else word.lower() for word in words]
    scales = {spellings[word] for word in (*stated, *named) if word in spellings}
    if len(scales) > 1:
        raise UnknownUnitError(f"its HELP names two units: {help_text!r}")
    return scales.pop() if scales else None


def _by_format(stated_scale: Scale | None, printed: Iterable[str]) -> Scale:
    """The unit of DCGM_FI_DEV_GPU_UTIL_RATIO, which has had two."""
    texts = [text for text in printed if isinstance(number(text), float)]
    decimals = any(not text.isdecimal() for text in texts)
    if stated_scale == _PERCENT and decimals:
        raise UnknownUnitError("its HELP says percent, which DCGM prints without decimals, and its values have some")
    if stated_scale is not None:
        return stated_scale
    if decimals or all(text == "0" for text in texts):
        return BASE  # 0 is 0 in either unit
    raise UnknownUnitError("DCGM 4.6 has percent under this name, later ones a ratio, and its HELP does not say")


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
