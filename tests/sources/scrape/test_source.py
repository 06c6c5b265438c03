"""The rules of reading a page, one by one."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exporter.fields import CLOCK_EVENTS, FIELDS
from exporter.model import Absence, Batch, Entity, SourceError
from exporter.sources.scrape.client import Page
from exporter.sources.scrape.source import ExporterSource
from tests.sources.scrape.pages import GPU, OTHER, URL, UUID, Exporter, devices, line, second, values

NEW = (  # what dcgm-exporter 4.9 prints for the same moment as OLD
    line("DEV_GPU_UTIL_RATIO", "0.910000"),
    line("DEV_MEMORY_UTIL_RATIO", "0.730000"),
    line("DEV_SM_CLOCK_HERTZ", 660000000),
    line("DEV_MEMORY_CLOCK_HERTZ", 5000000000),
    line("DEV_GPU_ENERGY_JOULES_TOTAL", 15152422),
    line("DEV_FB_CAPACITY_BYTES", 16106127360),
    line("DEV_FB_USED_BYTES", 5368709120),
    line("DEV_BOARD_POWER_WATTS", "68.244000"),
    line("DEV_GPU_TEMP_CELSIUS", 74),
    line("PROF_GR_ENGINE_UTIL_RATIO", "0.156205"),
    line("PROF_TENSOR_UTIL_RATIO", "0.005822"),
    line("PROF_PCIE_TX_BYTES_PER_SECOND", 4791810),
)
OLD = (
    line("DEV_GPU_UTIL", 91),
    line("DEV_MEM_COPY_UTIL", 73),
    line("DEV_SM_CLOCK", 660),
    line("DEV_MEM_CLOCK", 5000),
    line("DEV_TOTAL_ENERGY_CONSUMPTION", 15152422000),
    line("DEV_FB_TOTAL", 15360),
    line("DEV_FB_USED", 5120),
    line("DEV_POWER_USAGE", "68.244000"),
    line("DEV_GPU_TEMP", 74),
    line("PROF_GR_ENGINE_ACTIVE", "0.156205"),
    line("PROF_PIPE_TENSOR_ACTIVE", "0.005822"),
    line("PROF_PCIE_TX_BYTES", 4791810),
)


def test_both_dialects_say_the_same() -> None:
    expected = {
        "busy": 0.91,
        "memory_busy": 0.73,
        "sm_clock": 6.6e8,
        "memory_clock": 5e9,
        "energy": 15152422.0,
        "memory_total": float(15360 << 20),
        "memory_used": float(5120 << 20),
        "power": 68.244,
        "temperature": 74.0,
        "graphics_engine": 0.156205,
        "tensor": 0.005822,
        "pcie_transmit": 4791810.0,
    }
    assert values(second(*OLD)) == expected
    assert values(second(*NEW)) == expected


def test_where_a_page_has_a_field_under_two_names_the_exact_one_counts() -> None:
    used = line("DEV_FB_USED", 5120), line("DEV_FB_USED_BYTES", 5368709777)
    for lines in (used, used[::-1]):
        batch = second(*lines)
        assert values(batch) == {"memory_used": 5368709777.0}
        assert batch.rejected == {}


def test_the_batch_names_its_source_without_credentials() -> None:
    source = ExporterSource("http://me:secret@node:9400/metrics?key=1", fetch=lambda: Page(OLD[0]))
    batch = source.read(7.0)
    source.close()
    assert (batch.source, source.name, batch.end, batch.final) == ("dcgm-exporter", "dcgm-exporter", 7.0, False)
    assert batch.details == {"url": "http://node:9400/metrics"}
    assert "secret" not in repr(batch)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ({"UUID": UUID}, UUID),
        ({"uuid": UUID}, UUID),
        ({"Uuid": UUID}, UUID),
        ({"gpu_uuid": UUID}, UUID),
        ({"UUID": "", "uuid": UUID}, UUID),
        ({"UUID": f"{UUID}::3"}, UUID),  # a replica of time-slicing (field case 46)
    ],
)
def test_spellings_of_the_uuid(labels: dict[str, str], expected: str) -> None:
    body = ",".join(f'{name}="{value}"' for name, value in labels.items())
    assert [device.entity for device in second(f"DCGM_FI_DEV_GPU_TEMP{{{body}}} 30").devices] == [Entity(expected)]


def test_facts_are_gathered_from_all_rows_of_a_gpu() -> None:
    batch = second(
        f'DCGM_FI_DEV_GPU_TEMP{{UUID="{UUID}",gpu="3",Hostname="node-1",device="nvidia3"}} 30',
        f'DCGM_FI_DEV_POWER_USAGE{{uuid="{UUID}",modelName="Tesla T4",pci_bus_id="00000000:37:00.0",hostname="x"}} 9',
        f'DCGM_FI_DEV_SM_CLOCK{{UUID="{UUID}",DCGM_FI_DRIVER_VERSION="590.48.01",modelName="other"}} 9',
    )
    (device,) = batch.devices
    assert (device.index, device.model, device.pci_bus_id) == ("3", "Tesla T4", "00000000:37:00.0")
    assert (device.driver_version, device.minor) == ("590.48.01", "")
    named = second(f'DCGM_FI_DEV_GPU_TEMP{{gpu_uuid="{UUID}",model_name="A",DCGM_FI_SYSTEM_DRIVER_VERSION="1"}} 30')
    assert (named.devices[0].model, named.devices[0].driver_version) == ("A", "1")


def test_rows_of_links_switches_and_cpus_are_not_the_gpu_s() -> None:
    batch = second(
        OLD[0],
        f'DCGM_FI_PROF_NVLINK_TX_BYTES{{nvlink="3",gpu="0",gpu_uuid="{UUID}"}} 5',
        'DCGM_FI_DEV_GPU_TEMP{nvswitch="1",hostname="x"} 40',
        'DCGM_FI_DEV_GPU_TEMP{cpu="0"} 50',
    )
    assert values(batch) == {"busy": 0.91}
    assert batch.rejected == {}


def test_families_outside_the_catalogue_are_left_alone() -> None:
    batch = second(OLD[0], line("DEV_ENC_UTIL", 7), line("DEV_NVLINK_BANDWIDTH_TOTAL", 57), "go_goroutines 9")
    assert values(batch) == {"busy": 0.91}
    assert devices(batch)[GPU].fields == {"busy"}


def test_equal_rows_count_once_and_different_ones_not_at_all() -> None:
    """Pods that share a GPU repeat its rows (field cases 43, 44)."""
    pods = ("a", "b", "c")
    equal = [line("DEV_GPU_UTIL", 50, pod=pod) for pod in pods]
    same = second(*equal, line("DEV_GPU_UTIL", "50.000000", f"{UUID}::1"))
    assert values(same) == {"busy": 0.5}
    assert same.rejected == {}
    different = [line("DEV_POWER_USAGE", value, pod=pod) for pod, value in zip(pods, (70, 71, 70), strict=True)]
    batch = second(*equal, *different, line("DEV_POWER_USAGE", 60, OTHER))
    assert values(batch) == {"busy": 0.5, "power": Absence.OVERLAP}
    assert values(batch, Entity(OTHER)) == {"power": 60.0}
    assert batch.rejected == {("field", "duplicate"): 1}


def test_a_blank_row_does_not_contradict_a_value() -> None:
    assert values(second(line("DEV_GPU_TEMP", 2147483634), line("DEV_GPU_TEMP", 30, pod="a"))) == {"temperature": 30.0}


@pytest.mark.parametrize(
    ("printed", "absence"),
    [
        ("9223372036854775794", Absence.NOT_SUPPORTED),
        ("2147483635", Absence.NOT_PERMITTED),
        ("140737488355328.000000", Absence.BLANK),
        ("1.40737488355328e+16", Absence.BLANK),
        ("NaN", Absence.NOT_A_NUMBER),
        ("+Inf", Absence.NOT_A_NUMBER),
        ("-Inf", Absence.NOT_A_NUMBER),
        ("<<<NOT_SUPPORTED>>>", Absence.NOT_SUPPORTED),
    ],
)
def test_blanks_are_absent_before_scaling(printed: str, absence: Absence) -> None:
    names = ("DEV_GPU_UTIL", "DEV_TOTAL_ENERGY_CONSUMPTION", "DEV_FB_USED", "DEV_SM_CLOCK", "PROF_SM_ACTIVE")
    batch = second(*(line(name, printed) for name in names))
    assert values(batch) == dict.fromkeys(("busy", "energy", "memory_used", "sm_clock", "sm"), absence)
    assert devices(batch)[GPU].fields == {"busy", "energy", "memory_used", "sm_clock", "sm"}


def test_values_out_of_range_are_left_to_the_door() -> None:
    """GPU_UTIL of 1980 and 2619 (field case 7); SM active of 1.294 (field case 8)."""
    batch = second(line("DEV_GPU_UTIL", 2619), line("PROF_SM_ACTIVE", "1.294"), line("DEV_GPU_TEMP", -400))
    assert values(batch) == {"busy": 26.19, "sm": 1.294, "temperature": -400.0}


def test_a_line_that_cannot_be_read_costs_that_line() -> None:
    batch = second("4 Active Workloads", "", OLD[0], line("DEV_GPU_TEMP", "N/A"), line("DEV_POWER_USAGE", 9))
    assert values(batch) == {"busy": 0.91, "power": 9.0}
    assert batch.rejected == {("line", "unparseable"): 2}


def test_rows_without_a_uuid_are_counted() -> None:
    batch = second(OLD[0], 'DCGM_FI_DEV_GPU_TEMP{gpu="1"} 30', 'DCGM_FI_DEV_GPU_TEMP{UUID="::3"} 30')
    assert batch.rejected == {("line", "unidentified"): 2}
    assert [device.entity for device in batch.devices] == [GPU]


def test_rates_that_are_called_counters_are_rates() -> None:
    """Field cases 37, 38."""
    batch = second(
        "# HELP DCGM_FI_PROF_PCIE_TX_BYTES Total number of bytes transmitted through PCIe TX (in KB) via NVML.",
        "# TYPE DCGM_FI_PROF_PCIE_TX_BYTES counter",
        line("PROF_PCIE_TX_BYTES", 4791810),
    )
    (reading,) = batch.readings
    assert (reading.field, reading.value, reading.start, reading.end) == ("pcie_transmit", 4791810.0, 100.0, 101.0)


def test_a_family_that_repeats_is_one_family() -> None:
    head = "# HELP DCGM_FI_DEV_GPU_TEMP GPU temperature (in C).", "# TYPE DCGM_FI_DEV_GPU_TEMP gauge"
    batch = second(*head, line("DEV_GPU_TEMP", 30), *head, line("DEV_GPU_TEMP", 40, OTHER))
    assert (values(batch), values(batch, Entity(OTHER))) == ({"temperature": 30.0}, {"temperature": 40.0})


def test_a_family_of_unknown_unit_is_refused_once_and_said() -> None:
    rows = [line("DEV_POWER_USAGE", 9, uuid) for uuid in (UUID, OTHER)]
    batch = second("# HELP DCGM_FI_DEV_POWER_USAGE Power (in horses).", *rows, line("DEV_GPU_TEMP", 30))
    assert values(batch) == {"temperature": 30.0}
    assert batch.rejected == {("family", "unknown_unit"): 1}
    problem = batch.problems[0]
    assert problem.what == "DCGM_FI_DEV_POWER_USAGE is not read"
    assert "horses" in problem.why
    assert "HELP" in problem.remedy
    assert devices(batch)[GPU].fields == {"temperature"}


def test_help_that_names_another_unit_is_believed() -> None:
    batch = second(
        "# HELP DCGM_FI_DEV_FB_USED Memory used (in bytes).",
        line("DEV_FB_USED", 5120),
        "# HELP DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION Energy (in J).",
        line("DEV_TOTAL_ENERGY_CONSUMPTION", 77),
        "# HELP DCGM_FI_DEV_GPU_UTIL GPU utilization as a ratio.",
        line("DEV_GPU_UTIL", "0.5"),
    )
    assert values(batch) == {"memory_used": 5120.0, "energy": 77.0, "busy": 0.5}


@pytest.mark.parametrize(
    ("printed", "expected"),
    [("0", Absence.NOT_SUPPORTED), ("0.000000", Absence.NOT_SUPPORTED), ("1", 1.0), ("69", 69.0)],
)
def test_memory_of_zero_degrees_has_no_sensor(printed: str, expected: float | Absence) -> None:
    for name in ("DEV_MEMORY_TEMP", "DEV_MEMORY_TEMP_CELSIUS"):
        assert values(second(line(name, printed))) == {"memory_temperature": expected}
    assert values(second(line("DEV_GPU_TEMP", 0))) == {"temperature": 0.0}


@pytest.mark.parametrize("name", ["DEV_CLOCK_THROTTLE_REASONS", "DEV_CLOCKS_EVENT_REASONS"])
def test_clock_events_are_told_apart(name: str) -> None:
    batch = second(line(name, 0x4 | 0x40))
    active = {"clock_event:power_cap", "clock_event:hw_thermal"}
    assert values(batch) == {
        f"clock_event:{label}": float(f"clock_event:{label}" in active) for label in CLOCK_EVENTS.values()
    }
    assert all(r.start is None for r in batch.readings)
    assert set(values(second(line(name, 0))).values()) == {0.0}


@pytest.mark.parametrize(
    ("printed", "absence"),
    [
        ("1.5", Absence.OUT_OF_RANGE),
        ("-1", Absence.OUT_OF_RANGE),
        ("NaN", Absence.NOT_A_NUMBER),
        ("9223372036854775792", Absence.BLANK),
    ],
)
def test_a_mask_that_is_none_is_absent(printed: str, absence: Absence) -> None:
    assert values(second(line("DEV_CLOCKS_EVENT_REASONS", printed))) == {"clock_event": absence}


def test_clock_events_without_a_name_are_counted() -> None:
    batch = second(line("DEV_CLOCKS_EVENT_REASONS", 0x1001))
    assert values(batch)["clock_event:idle"] == 1.0
    assert batch.rejected == {("clock_event", "unknown_reason"): 1}


def problems(*lines: str) -> list[str]:
    return [problem.what for problem in second(*lines).problems]


def test_a_page_without_sm_active_says_how_to_get_it() -> None:
    assert problems(*OLD) == ["SM active is not known"]
    assert "DCGM_FI_PROF" in second(*OLD).problems[0].remedy
    assert problems(*OLD, line("PROF_SM_ACTIVE", "0.1")) == []
    assert problems(*NEW, line("PROF_SM_UTIL_RATIO", "140737488355328")) == []


@pytest.mark.parametrize(
    ("text", "looks"),
    [
        ("", "it is empty"),
        ("# HELP a b\n\n", "it is empty"),
        ("Not\nmetrics\n", "none of its 2 lines is a sample"),
        ("node_load1 1\nnode_load5 1\ngo_goroutines 1", "node_exporter"),
        ('nvidia_smi_power_draw_watts{uuid="x"} 1', "nvidia_gpu_exporter"),
        ('dcgm_gpu_temp{gpu="0",uuid="GPU-1"} 25', "dcgm-exporter 1"),
        ('honest_gpu_busy_ratio{uuid="GPU-1"} 0.5', "a page of this exporter itself"),
        ('DCGM_FI_DEV_GPU_TEMP{gpu="0"} 25', "none of their rows names a GPU by its UUID"),
        ('DCGM_FI_DEV_CPU_UTIL_TOTAL{cpu="0"} 25', "only covers switches, links or CPUs"),
        ("a 1\nb 2\nb 3", "2 families, such as a"),
    ],
)
def test_a_page_without_gpus_is_described(text: str, looks: str) -> None:
    with pytest.raises(SourceError) as caught:
        Exporter(text).read(1.0)
    assert looks in str(caught.value)
    assert URL in str(caught.value)
    assert caught.value.remedy


def test_failures_of_the_fetch_go_through_and_the_source_goes_on() -> None:
    exporter = Exporter(*OLD)
    exporter.failure = SourceError("down", "start it")
    with pytest.raises(SourceError, match="down"):
        exporter.read(100.0)
    exporter.failure = None
    exporter.read(101.0)
    assert values(exporter.read(102.0))["busy"] == 0.91


_NAMES = st.sampled_from([name for spec in FIELDS.values() for name in spec.names])
_VALUES = st.one_of(
    st.floats().map(repr),
    st.integers(-(2**70), 2**70).map(str),
    st.sampled_from(["9223372036854775794", "1e400", "<<<NULL>>>", "0", "N/A", ""]),
)
_LABELS = st.sampled_from(
    [
        f'UUID="{UUID}"',
        f'uuid="{UUID}",GPU_I_ID="3"',
        f'UUID="{OTHER}::1"',
        'gpu="0"',
        f'UUID="{UUID}",GPU_I_ID="x"',
        "",
    ]
)
_HELPS = st.sampled_from(["", "(in %)", "(in J)", "ratio of percent", "bytes in MiB", "(in )"])


@settings(deadline=None)
@given(st.lists(st.lists(st.tuples(_NAMES, _LABELS, _VALUES, _HELPS), max_size=12), min_size=1, max_size=4))
def test_no_page_breaks_it_and_every_reading_is_well_formed(pages: list[list[tuple[str, str, str, str]]]) -> None:
    exporter = Exporter("")
    for second_, page in enumerate(pages):
        text = "\n".join(f"# HELP {name} {said}\n{name}{{{labels}}} {value}" for name, labels, value, said in page)
        try:
            batch = exporter.read(100.0 + second_, text)
        except SourceError:
            continue
        check(batch)


def check(batch: Batch) -> None:
    entities = {device.entity: device for device in batch.devices}
    assert len(entities) == len(batch.devices)
    for reading in batch.readings:
        assert reading.field in entities[reading.entity].fields
        assert (reading.value is None) != (reading.absence is None)
        assert reading.end == batch.end
        assert reading.start is None or reading.start < reading.end
    assert len({(r.entity, r.field, r.label) for r in batch.readings if r.field != "xid"}) == len(
        [r for r in batch.readings if r.field != "xid"]
    )
