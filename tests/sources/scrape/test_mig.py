"""Boards cut into instances: what is whose (field cases 2, 12, 35, 42)."""

from __future__ import annotations

import pytest

from exporter.model import Absence, Entity
from tests.sources.scrape.pages import GPU, OTHER, UUID, Exporter, devices, line, second, values

ONE, TWO = Entity(UUID, 1), Entity(UUID, 2)
CUT = (line("PROF_GR_ENGINE_ACTIVE", "0.4", gi=1), line("PROF_GR_ENGINE_ACTIVE", "0.2", gi=2))


def test_instances_and_their_board_are_devices() -> None:
    batch = second(*CUT, line("DEV_GPU_TEMP", 30, OTHER))
    found = devices(batch)
    assert set(found) == {GPU, ONE, TWO, Entity(OTHER)}
    assert {entity: device.mig_profile for entity, device in found.items() if device.mig_profile} == {
        ONE: "1g.10gb",
        TWO: "1g.10gb",
    }
    assert [entity for entity, device in found.items() if device.mig_enabled] == [GPU]
    assert found[GPU].model == found[ONE].model == "NVIDIA H100 80GB HBM3"


def test_fields_of_instances_and_of_the_board() -> None:
    batch = second(
        *CUT,
        line("PROF_GR_ENGINE_ACTIVE", "0.3"),
        line("DEV_FB_USED", 6, gi=1),
        line("DEV_FB_USED", 4384, gi=2),
        line("DEV_FB_USED", 4400),
        line("PROF_PCIE_RX_BYTES", 500),
        line("DEV_POWER_USAGE", "112.5"),
    )
    assert values(batch, ONE) == {"graphics_engine": 0.4, "memory_used": 6 << 20}
    assert values(batch, TWO) == {"graphics_engine": 0.2, "memory_used": 4384 << 20}
    assert values(batch) == {
        "graphics_engine": 0.3,
        "memory_used": 4400 << 20,
        "pcie_receive": 500.0,
        "power": 112.5,
    }
    assert devices(batch)[ONE].fields == {"graphics_engine", "memory_used"}
    assert devices(batch)[GPU].fields == {"graphics_engine", "memory_used", "pcie_receive", "power"}


def test_what_is_the_board_s_is_booked_once_though_every_instance_repeats_it() -> None:
    repeated = [
        text
        for gi, power, energy in ((1, "112.252000", 126272101025), (2, "106.463000", 126272106318))
        for text in (
            line("DEV_POWER_USAGE", power, gi=gi),
            line("DEV_TOTAL_ENERGY_CONSUMPTION", energy, gi=gi),
            line("DEV_SM_CLOCK", 1410, gi=gi),
            line("DEV_GPU_TEMP", 35, gi=gi),
            line("DEV_PCIE_REPLAY_COUNTER", 0, gi=gi),
            line("PROF_NVLINK_TX_BYTES", 700, gi=gi),
            line("DEV_CLOCKS_EVENT_REASONS", 4, gi=gi),
        )
    ]
    batch = second(*CUT, *repeated)
    board = values(batch)
    assert {name: value for name, value in board.items() if not name.startswith("clock_event")} == {
        "power": 112.252,  # the first one printed: reads of one board at two moments, both true
        "energy": 126272106.318,  # the latest
        "sm_clock": 1.41e9,
        "temperature": 35.0,
        "pcie_replay": 0.0,
        "nvlink_transmit": 700.0,
    }
    assert board["clock_event:power_cap"] == 1.0
    assert values(batch, ONE) == {"graphics_engine": 0.4}
    assert devices(batch)[ONE].fields == {"graphics_engine"}
    assert batch.rejected == {}


def test_a_row_of_the_board_itself_beats_the_repetitions() -> None:
    repeated = [line("DEV_POWER_USAGE", power, gi=gi) for gi, power in ((1, 100), (2, 101))]
    assert values(second(*CUT, *repeated, line("DEV_POWER_USAGE", 99)))["power"] == 99.0
    assert values(second(line("DEV_POWER_USAGE", 99), *CUT, *repeated))["power"] == 99.0


def test_blank_repetitions_do_not_hide_a_value() -> None:
    blank = line("PROF_PCIE_TX_BYTES", 9223372036854775794, gi=1)
    assert values(second(*CUT, blank))["pcie_transmit"] is Absence.NOT_SUPPORTED
    assert values(second(*CUT, blank, line("PROF_PCIE_TX_BYTES", 5, gi=2)))["pcie_transmit"] == 5.0


@pytest.mark.parametrize("printed", ["0", "57", "9223372036854775792"])
def test_the_claim_does_not_exist_on_a_cut_board(printed: str) -> None:
    batch = second(
        *CUT,
        line("DEV_GPU_UTIL", printed),
        line("DEV_GPU_UTIL", printed, gi=1),
        line("DEV_MEM_COPY_UTIL", printed, gi=1),
        line("DEV_GPU_UTIL", 57, OTHER),
    )
    assert values(batch) == {"busy": Absence.NOT_SUPPORTED}
    assert values(batch, ONE) == {
        "graphics_engine": 0.4,
        "busy": Absence.NOT_SUPPORTED,
        "memory_busy": Absence.NOT_SUPPORTED,
    }
    assert values(batch, Entity(OTHER)) == {"busy": 0.57}


def test_instances_come_and_go() -> None:
    exporter = Exporter(line("DEV_GPU_UTIL", 50))
    exporter.read(100.0)
    assert values(exporter.read(101.0)) == {"busy": 0.5}
    batch = exporter.read(102.0, line("DEV_GPU_UTIL", 0), *CUT)
    assert devices(batch)[GPU].mig_enabled
    assert values(batch) == {"busy": Absence.NOT_SUPPORTED}
    assert values(batch, ONE) == {}  # its first read
    batch = exporter.read(103.0, line("DEV_GPU_UTIL", 50))
    assert not devices(batch)[GPU].mig_enabled
    assert values(batch) == {"busy": 0.5}


def test_a_row_whose_instance_cannot_be_read_is_counted() -> None:
    batch = second(*CUT, line("DEV_FB_USED", 5, GPU_I_ID="x"), line("DEV_FB_USED", 5, GPU_I_ID="٣"))
    assert batch.rejected == {("line", "unidentified"): 2}
    assert values(batch) == {}


def test_pods_that_share_an_instance_repeat_its_rows() -> None:
    rows = [line("PROF_SM_ACTIVE", "0.5", gi=1, pod=pod) for pod in ("a", "b")]
    assert values(second(*rows), ONE) == {"sm": 0.5}
