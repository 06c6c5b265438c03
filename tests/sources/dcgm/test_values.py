"""Ids, units and blanks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.fields import CLAIM, FIELDS, FP64_BLANK, INT32_BLANK, INT64_BLANK, LINKS, PROFILING
from exporter.model import Absence
from exporter.sources.dcgm.bindings import Bindings
from exporter.sources.dcgm.measurement import ENGINES
from exporter.sources.dcgm.rows import HEAD
from exporter.sources.dcgm.values import IDS, NATIVE_BYTES, SPECS, blank_of

REASONS = [Absence.BLANK, Absence.NOT_FOUND, Absence.NOT_SUPPORTED, Absence.NOT_PERMITTED, Absence.BLANK]


def test_every_field_of_the_claim_and_the_measurement_has_an_id() -> None:
    assert set(ENGINES) == set(PROFILING)
    assert {*CLAIM, *PROFILING, *LINKS} <= set(IDS)
    assert {SPECS[field].field for field in SPECS} == {name for name, field in FIELDS.items() if field.dcgm is not None}
    assert set(NATIVE_BYTES.values()) <= set(LINKS)


@pytest.mark.parametrize(
    ("field", "raw", "value"),
    [
        (203, 100, 1.0),
        (204, 40, 0.4),
        (1002, 0.98, 0.98),
        (100, 1980, 1.98e9),
        (101, 2619, 2.619e9),
        (155, 612.5, 612.5),
        (156, 5_000_000_000, 5e6),
        (250, 81559, 81559 * 2**20),
        (253, 559, 559 * 2**20),
        (1009, 2**31, 2.0**31),
        (150, 55, 55.0),
    ],
)
def test_units(field: int, raw: float, value: float) -> None:
    assert raw * SPECS[field].scale == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("field", [1001, 1005, 155])
@pytest.mark.parametrize("offset", range(5))
def test_blank_doubles(field: int, offset: int) -> None:
    assert blank_of(field, FP64_BLANK + offset) is REASONS[offset]


@pytest.mark.parametrize("field", [203, 156, 1009, 1091, 230])
@pytest.mark.parametrize("offset", range(5))
def test_blank_integers(field: int, offset: int) -> None:
    assert blank_of(field, INT64_BLANK + offset) is REASONS[offset]


def test_narrow_blanks_are_blanks_where_no_value_can_be_that_large() -> None:
    assert [blank_of(100, INT32_BLANK + offset) for offset in range(5)] == REASONS
    assert blank_of(156, INT32_BLANK) is None
    assert blank_of(1009, INT32_BLANK + 2) is None


def test_texts_and_infinity_are_no_values() -> None:
    assert blank_of(54, None) is Absence.NOT_A_NUMBER
    assert blank_of(1002, float("inf")) is Absence.BLANK


@given(st.floats(0.0, 1.0))
def test_ratios_are_values(value: float) -> None:
    assert blank_of(1002, value) is None


@given(st.integers(0, 2**62))
def test_totals_are_values(value: int) -> None:
    assert blank_of(156, value) is None


def test_rows_are_laid_out_as_the_bindings_say(bindings: Bindings) -> None:
    layout = bindings.structs.c_dcgmFieldValue_v1
    offsets = [getattr(layout, name).offset for name in ("fieldId", "fieldType", "status", "ts", "value")]
    packed = HEAD.pack(1, 2, 3, 4, 5, 6)
    assert [packed[offset] for offset in offsets] == [2, 3, 4, 5, 6]
    assert layout.value.offset + 8 == HEAD.size
