"""The interval that a mean stands for."""

from __future__ import annotations

import pytest

from exporter.model import Absence, Reading, SourceError
from tests.sources.scrape.pages import GPU, OTHER, UUID, Exporter, line

PAGE = (line("DEV_GPU_UTIL", 91), line("PROF_SM_ACTIVE", "0.156205"), line("PROF_PCIE_RX_BYTES", 1000))


def spans(readings: object) -> set[tuple[float | None, float]]:
    return {(r.start, r.end) for r in readings if r.field in ("busy", "sm", "pcie_receive")}  # type: ignore[attr-defined]


def test_the_first_read_has_no_interval_and_gives_no_means() -> None:
    exporter = Exporter(*PAGE, line("DEV_POWER_USAGE", 70), line("PROF_DRAM_ACTIVE", "NaN"))
    batch = exporter.read(100.0)
    assert batch.readings == [Reading(GPU, "power", 100.0, 70.0)]
    assert batch.devices[0].fields == {"busy", "sm", "pcie_receive", "power", "dram"}


def test_means_follow_one_another_without_gap() -> None:
    exporter = Exporter(*PAGE)
    exporter.read(100.0)
    assert spans(exporter.read(101.0).readings) == {(100.0, 101.0)}
    assert spans(exporter.read(102.5).readings) == {(101.0, 102.5)}
    assert spans(exporter.read(103.0).readings) == {(102.5, 103.0)}


def test_absent_means_have_their_interval_too() -> None:
    exporter = Exporter(line("PROF_SM_ACTIVE", "140737488355328.000000"))
    exporter.read(100.0)
    assert exporter.read(101.0).readings == [Reading(GPU, "sm", 101.0, None, 100.0, Absence.BLANK)]


def test_after_an_outage_only_the_usual_pace_is_counted() -> None:
    exporter = Exporter(*PAGE)
    for now in (100.0, 101.0, 102.0):
        exporter.read(now)
    assert spans(exporter.read(105.0).readings) == {(102.0, 105.0)}  # three times the pace is not yet an outage
    assert spans(exporter.read(115.0).readings) == {(114.0, 115.0)}
    assert spans(exporter.read(116.0).readings) == {(115.0, 116.0)}


@pytest.mark.parametrize("reads_before", [1, 5])
def test_reads_that_fail_show_the_pace(reads_before: int) -> None:
    exporter = Exporter(*PAGE)
    for second in range(reads_before):
        exporter.read(100.0 + second)
    exporter.failure = SourceError("down")
    for second in range(20):
        with pytest.raises(SourceError, match="down"):
            exporter.read(110.0 + second)
    exporter.failure = None
    assert spans(exporter.read(130.0).readings) == {(129.0, 130.0)}
    assert spans(exporter.read(131.0).readings) == {(130.0, 131.0)}


def test_one_late_read_does_not_shorten_the_next_intervals() -> None:
    exporter = Exporter(*PAGE)
    for now in (100.0, 101.0, 102.0, 103.75, 104.0):
        exporter.read(now)
    assert spans(exporter.read(105.0).readings) == {(104.0, 105.0)}


def test_a_slower_pace_is_learned() -> None:
    exporter = Exporter(*PAGE)
    now = 100.0
    for gap in [1.0] * 8 + [10.0] * 8:
        now += gap
        exporter.read(now)
    assert spans(exporter.read(now + 10).readings) == {(now, now + 10)}


def test_each_gpu_has_its_own_beginning() -> None:
    exporter = Exporter(*PAGE)
    exporter.read(100.0)
    both = [*PAGE, line("DEV_GPU_UTIL", 50, OTHER)]
    assert {r.entity.uuid for r in exporter.read(101.0, *both).readings} == {UUID}
    batch = exporter.read(102.0, *both)
    assert {(r.entity.uuid, r.start) for r in batch.readings} == {(UUID, 101.0), (OTHER, 101.0)}
    exporter.read(103.0, *PAGE)
    starts = {r.entity.uuid: r.start for r in exporter.read(104.0, *both).readings}
    assert starts == {UUID: 103.0, OTHER: 102.0}
    for now in range(105, 115):
        exporter.read(float(now), *PAGE)
    starts = {r.entity.uuid: r.start for r in exporter.read(115.0, *both).readings}
    assert starts == {UUID: 114.0, OTHER: 114.0}


def test_a_clock_that_stands_still_gives_no_interval() -> None:
    exporter = Exporter(*PAGE)
    exporter.read(100.0)
    assert exporter.read(100.0).readings == []
    assert spans(exporter.read(101.0).readings) == {(100.0, 101.0)}
