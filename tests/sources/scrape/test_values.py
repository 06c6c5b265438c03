"""Blanks before scaling: every printed form of them (dcgm_structs.h)."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exporter.model import Absence
from exporter.sources.scrape.dialect import number


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        ("9223372036854775792", Absence.BLANK),
        ("9223372036854775793", Absence.NOT_FOUND),
        ("9223372036854775794", Absence.NOT_SUPPORTED),
        ("9223372036854775795", Absence.NOT_PERMITTED),
        ("9223372036854775807", Absence.BLANK),
        ("9.223372036854776e+18", Absence.BLANK),
        ("9223372036854775808.000000", Absence.BLANK),
        ("2147483632", Absence.BLANK),
        ("2147483633", Absence.NOT_FOUND),
        ("2147483634", Absence.NOT_SUPPORTED),
        ("2147483635", Absence.NOT_PERMITTED),
        ("2.147483634e+09", Absence.NOT_SUPPORTED),
        ("140737488355328.000000", Absence.BLANK),
        ("140737488355329", Absence.NOT_FOUND),
        ("140737488355330.000000", Absence.NOT_SUPPORTED),
        ("1.40737488355328e+14", Absence.BLANK),
        ("1.4073748835533e+14", Absence.NOT_SUPPORTED),
        ("1.40737488355331e+14", Absence.NOT_PERMITTED),
        ("1.40737488355328e+16", Absence.BLANK),  # times 100 on the way (field case 4)
        ("140737488355328.5", Absence.BLANK),
        ("<<<NULL>>>", Absence.BLANK),
        ("<<<NOT_FOUND>>>", Absence.NOT_FOUND),
        ("<<<NOT_SUPPORTED>>>", Absence.NOT_SUPPORTED),
        ("<<<NOT_PERM>>>", Absence.NOT_PERMITTED),
        ("<<<SOMETHING>>>", Absence.BLANK),
        ("NaN", Absence.NOT_A_NUMBER),
        ("+Inf", Absence.NOT_A_NUMBER),
        ("-Inf", Absence.NOT_A_NUMBER),
        ("1e999", Absence.NOT_A_NUMBER),
        ("9" * 5000, Absence.NOT_A_NUMBER),
        ("0", 0.0),
        ("0.156205", 0.156205),
        ("-3", -3.0),
        ("2147483631", 2147483631.0),
        ("2147483636", 2147483636.0),
        ("2147483632.5", 2147483632.5),
        ("140737488355327", 140737488355327.0),
    ],
)
def test_printed_values(printed: str, expected: float | Absence) -> None:
    assert number(printed) == expected


@settings(deadline=None)
@given(st.floats(-1e14, 1e14))
def test_other_numbers_are_themselves(value: float) -> None:
    assert number(repr(value)) == value or 2147483632 <= value <= 2147483635
