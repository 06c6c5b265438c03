"""Names and HELP texts to fields and units; a conflict is refused, not guessed."""

from __future__ import annotations

import pytest

from exporter.fields import FIELDS
from exporter.sources.scrape.dialect import BASE, Meaning, Scale, UnknownUnitError, meaning

PERCENT, MILLI, MEGA, MEBI = Scale(1, 100), Scale(1, 1000), Scale(10**6), Scale(1 << 20)


def scale(name: str, help_text: str = "", *printed: str) -> Scale:
    found = meaning(f"DCGM_FI_{name}", help_text, printed)
    assert found is not None
    return found.scale


# names, in all three vocabularies, with the HELP that dcgm-exporter's default files give them
@pytest.mark.parametrize(
    ("name", "help_text", "field", "expected"),
    [
        ("DEV_GPU_UTIL", "GPU utilization (in %).", "busy", PERCENT),
        ("DEV_MEM_COPY_UTIL", "Memory utilization (in %).", "memory_busy", PERCENT),
        ("DEV_MEMORY_UTIL_RATIO", "", "memory_busy", BASE),
        ("DEV_SM_CLOCK", "SM clock frequency (in MHz).", "sm_clock", MEGA),
        ("DEV_SM_CLOCK_HERTZ", "SM clock frequency (in Hz).", "sm_clock", BASE),
        ("DEV_MEM_CLOCK", "Memory clock frequency (in MHz).", "memory_clock", MEGA),
        ("DEV_MEMORY_CLOCK_HERTZ", "", "memory_clock", BASE),
        ("DEV_MEMORY_TEMP", "Memory temperature (in C).", "memory_temperature", BASE),
        ("DEV_MEMORY_TEMP_CELSIUS", "", "memory_temperature", BASE),
        ("DEV_GPU_TEMP", "GPU temperature (in C).", "temperature", BASE),
        ("DEV_GPU_TEMP_CELSIUS", "", "temperature", BASE),
        ("DEV_POWER_USAGE", "Power draw (in W).", "power", BASE),
        ("DEV_BOARD_POWER_WATTS", "", "power", BASE),
        ("DEV_POWER_MGMT_LIMIT", "", "power_limit", BASE),
        ("DEV_BOARD_POWER_LIMIT_REQUESTED_WATTS", "", "power_limit", BASE),
        ("DEV_TOTAL_ENERGY_CONSUMPTION", "Total energy consumption since boot (in mJ).", "energy", MILLI),
        ("DEV_GPU_ENERGY_JOULES_TOTAL", "", "energy", BASE),
        ("DEV_FB_TOTAL", "Framebuffer memory total (in MiB).", "memory_total", MEBI),
        ("DEV_FB_CAPACITY_BYTES", "", "memory_total", BASE),
        ("DEV_FB_FREE", "Framebuffer memory free (in MiB).", "memory_free", MEBI),
        ("DEV_FB_FREE_BYTES", "", "memory_free", BASE),
        ("DEV_FB_USED", "Framebuffer memory used (in MB).", "memory_used", MEBI),
        ("DEV_FB_USED_BYTES", "", "memory_used", BASE),
        ("DEV_FB_RESERVED", "", "memory_reserved", MEBI),
        ("DEV_FB_RESERVED_BYTES", "", "memory_reserved", BASE),
        ("DEV_PCIE_REPLAY_COUNTER", "Total number of PCIe retries.", "pcie_replay", BASE),
        ("DEV_PCIE_REPLAY_TOTAL", "", "pcie_replay", BASE),
        ("DEV_XID_ERRORS", "Value of the last XID error encountered.", "xid", BASE),
        ("DEV_XID_ERROR", "", "xid", BASE),
        ("DEV_ROW_REMAP_FAILURE", "Whether remapping of rows has failed", "remap_failed", BASE),
        ("DEV_ROW_REMAP_FAILED", "", "remap_failed", BASE),
        ("DEV_CLOCK_THROTTLE_REASONS", "", "clock_event", BASE),
        ("DEV_CLOCKS_EVENT_REASONS", "", "clock_event", BASE),
        ("PROF_GR_ENGINE_ACTIVE", "Ratio of time the graphics engine is active (in %).", "graphics_engine", BASE),
        ("PROF_GR_ENGINE_UTIL_RATIO", "", "graphics_engine", BASE),
        ("PROF_SM_ACTIVE", "", "sm", BASE),
        ("PROF_SM_UTIL_RATIO", "", "sm", BASE),
        ("PROF_SM_OCCUPANCY", "", "sm_occupancy", BASE),
        ("PROF_SM_OCCUPANCY_RATIO", "", "sm_occupancy", BASE),
        ("PROF_PIPE_TENSOR_ACTIVE", "Ratio of cycles the tensor (HMMA) pipe is active (in %).", "tensor", BASE),
        ("PROF_TENSOR_UTIL_RATIO", "", "tensor", BASE),
        ("PROF_DRAM_UTIL_RATIO", "", "dram", BASE),
        ("PROF_PIPE_TENSOR_HMMA_ACTIVE", "", "tensor_hmma", BASE),
        ("PROF_HMMA_UTIL_RATIO", "", "tensor_hmma", BASE),
        ("PROF_INT_UTIL_RATIO", "", "integer", BASE),
        ("PROF_PCIE_TX_BYTES", "Total number of bytes transmitted (in KB).", "pcie_transmit", BASE),
        ("PROF_PCIE_TX_BYTES_PER_SECOND", "", "pcie_transmit", BASE),
        ("PROF_NVLINK_RX_BYTES", "", "nvlink_receive", BASE),
        ("PROF_NVLINK_RX_BYTES_PER_SECOND", "", "nvlink_receive", BASE),
    ],
)
def test_the_three_vocabularies(name: str, help_text: str, field: str, expected: Scale) -> None:
    found = meaning(f"DCGM_FI_{name}", help_text, ())
    assert found is not None
    assert (found.field, found.scale) == (field, expected)
    assert FIELDS[field].names[found.rank] == f"DCGM_FI_{name}"


def test_other_families_are_nobody_s() -> None:
    for name in ("DCGM_FI_DEV_ENC_UTIL", "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", "DCGM_EXP_XID_ERRORS_COUNT", "up"):
        assert meaning(name, "", ()) is None


@pytest.mark.parametrize(
    ("name", "help_text", "expected"),
    [
        ("DEV_GPU_UTIL", "GPU utilization ratio, 0 to 1.", BASE),
        ("DEV_GPU_UTIL", "Fraction of time a kernel ran.", BASE),
        ("DEV_GPU_UTIL", "Percent of time a kernel ran.", PERCENT),
        ("DEV_TOTAL_ENERGY_CONSUMPTION", "Energy (in J)", BASE),
        ("DEV_TOTAL_ENERGY_CONSUMPTION", "Energy in joules.", BASE),
        ("DEV_FB_USED", "Memory used ( in bytes )", BASE),
        ("DEV_FB_USED", "Memory used (in GiB)", Scale(1 << 30)),
        ("DEV_SM_CLOCK", "Clock in hertz", BASE),
        ("DEV_SM_CLOCK", "Clock (in GHz)", Scale(10**9)),
        ("DEV_POWER_USAGE", "Power (in mW)", MILLI),
        ("DEV_GPU_TEMP", "Temperature of a GPU in degrees C.", BASE),
        ("DEV_FB_FREE", "B is a letter", MEBI),  # letters that stand alone name no unit
        ("DEV_POWER_USAGE", "Power for the device in Watts.", BASE),
    ],
)
def test_help_that_names_another_unit_decides_for_the_old_names(name: str, help_text: str, expected: Scale) -> None:
    assert scale(name, help_text) == expected


@pytest.mark.parametrize(
    ("name", "help_text"),
    [
        ("DEV_POWER_USAGE", "Power (in horses)"),
        ("DEV_GPU_TEMP", "Temperature (in F)"),
        ("DEV_FB_USED", "Memory (in pages)"),
        ("DEV_GPU_UTIL", "A ratio (in %)"),
        ("DEV_FB_USED_BYTES", "Memory used (in MiB)"),
        ("DEV_SM_CLOCK_HERTZ", "Clock (in MHz)"),
        ("DEV_GPU_ENERGY_JOULES_TOTAL", "Energy (in mJ)"),
        ("DEV_MEMORY_UTIL_RATIO", "Memory utilization (in %)"),
    ],
)
def test_conflicts_are_refused(name: str, help_text: str) -> None:
    with pytest.raises(UnknownUnitError):
        scale(name, help_text)


@pytest.mark.parametrize(
    ("help_text", "printed", "expected"),
    [
        ("GPU utilization (in %).", ("91", "0"), PERCENT),  # DCGM 4.6: field 203, an integer
        ("GPU utilization ratio.", ("0.910000",), BASE),  # DCGM 4.7: field 1613, a double
        ("GPU utilization ratio.", ("1",), BASE),
        ("GPU utilization.", ("0.910000", "0.000000"), BASE),
        ("GPU utilization.", ("9.1e-05",), BASE),
        ("", ("0", "0"), BASE),
        ("", ("9223372036854775794",), BASE),  # nothing to scale
        ("", (), BASE),
    ],
)
def test_the_name_that_has_had_two_units(help_text: str, printed: tuple[str, ...], expected: Scale) -> None:
    assert scale("DEV_GPU_UTIL_RATIO", help_text, *printed) == expected


@pytest.mark.parametrize(
    ("help_text", "printed"),
    [("", ("1",)), ("GPU utilization.", ("91", "0")), ("GPU utilization (in %).", ("0.910000",))],
)
def test_the_name_that_has_had_two_units_is_not_guessed(help_text: str, printed: tuple[str, ...]) -> None:
    with pytest.raises(UnknownUnitError):
        scale("DEV_GPU_UTIL_RATIO", help_text, *printed)


def test_scaling_is_exact_where_floats_allow() -> None:
    assert [PERCENT(value) for value in (7, 29, 57, 58, 91)] == [0.07, 0.29, 0.57, 0.58, 0.91]
    assert MILLI(15152422938) == 15152422.938
    assert MEBI(9791) == 10266607616


def test_every_name_is_of_one_field() -> None:
    names = [name for spec in FIELDS.values() for name in spec.names]
    assert len(names) == len(set(names))
    assert all(isinstance(meaning(name, "", ()), Meaning) for name in names)
