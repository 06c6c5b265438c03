"""From the code of the last Xid to events (field case 40)."""

from __future__ import annotations

import pytest

from exporter.model import Absence, Batch, Reading
from tests.sources.scrape.pages import GPU, Exporter, line, second, values

OTHERS = line("DEV_GPU_TEMP", 30)


def xid(value: object, gi: int | None = None) -> str:
    return line("DEV_XID_ERRORS", value, gi=gi)


def events(batch: Batch) -> list[tuple[str, float | None]]:
    found = [r for r in batch.readings if r.field == "xid"]
    assert all(r.entity == GPU and r.absence is None for r in found)
    return [(r.label, r.value) for r in found]


def test_a_change_of_the_code_is_one_event() -> None:
    exporter = Exporter(OTHERS, xid(0))
    assert events(exporter.read(100.0)) == []
    assert events(exporter.read(101.0)) == []
    batch = exporter.read(102.0, OTHERS, xid(43))
    assert [r for r in batch.readings if r.field == "xid"] == [Reading(GPU, "xid", 102.0, 1.0, label="43")]
    assert events(exporter.read(103.0)) == []  # and a second 43 looks the same
    assert events(exporter.read(104.0, OTHERS, xid(31))) == [("31", 1.0)]
    assert events(exporter.read(105.0, OTHERS, xid(43))) == [("43", 1.0)]


def test_what_is_there_at_first_is_of_unknown_age() -> None:
    exporter = Exporter(OTHERS, xid(79))
    assert events(exporter.read(100.0)) == []
    assert events(exporter.read(101.0)) == []
    assert "xid" in exporter.read(102.0).devices[0].fields


def test_a_code_that_appears_where_there_was_none_is_an_event() -> None:
    exporter = Exporter(OTHERS)
    exporter.read(100.0)
    assert events(exporter.read(101.0, OTHERS, xid(79))) == [("79", 1.0)]
    exporter.read(102.0, OTHERS)
    assert events(exporter.read(103.0, OTHERS, xid(79))) == []  # the same one, still or again


def test_a_restart_of_that_exporter_forgets_the_code() -> None:
    exporter = Exporter(OTHERS, xid(43))
    exporter.read(100.0)
    assert events(exporter.read(101.0, OTHERS, xid(0))) == []
    assert events(exporter.read(102.0, OTHERS, xid(43))) == [("43", 1.0)]


def test_an_error_that_board_and_instances_repeat_counts_once_on_the_board() -> None:
    exporter = Exporter(xid(0), xid(0, 1), xid(0, 2))
    exporter.read(100.0)
    assert events(exporter.read(101.0, xid(43), xid(43, 1), xid(43, 2))) == [("43", 1.0)]
    assert events(exporter.read(102.0, xid(43), xid(31, 1), xid(13, 2))) == [("31", 1.0), ("13", 1.0)]


def test_a_new_instance_tells_nothing_new() -> None:
    exporter = Exporter(xid(43))
    exporter.read(100.0)
    assert events(exporter.read(101.0, xid(43), xid(43, 1))) == []


@pytest.mark.parametrize(
    ("printed", "absence"),
    [
        ("9223372036854775794", Absence.NOT_SUPPORTED),
        ("NaN", Absence.NOT_A_NUMBER),
        ("43.5", Absence.NOT_A_NUMBER),
        ("-1", Absence.OUT_OF_RANGE),
        ("808334905", Absence.OUT_OF_RANGE),
    ],
)
def test_what_is_no_code_is_absent(printed: str, absence: Absence) -> None:
    assert values(second(xid(printed))) == {"xid": absence}
