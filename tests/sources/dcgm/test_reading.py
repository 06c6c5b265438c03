"""What a healthy node gives: every value of the scenario, in our units, on our time line."""

import dataclasses

import pytest

from exporter.fields import CLAIM, CLOCK_EVENTS, LINKS, PROFILING
from exporter.model import Absence, SourceError
from tests.abi.dcgm.codes import Blank, LinkState
from tests.abi.dcgm.happenings import blanking, silencing
from tests.abi.dcgm.scenario import Links
from tests.abi.dcgm.values import Counter, Events, Value, steps

from .conftest import Drive
from .driving import SHIFT, absences, of, spans, values
from .nodes import board, geforce, gpu, node, t4, v100, with_fields
from .observing import Observer


def test_an_h100_gives_the_full_set(drive: Drive) -> None:
    driver = drive(node(gpu()))
    first, *_, last = driver.run(0.0, 3.0)
    (device,) = last.devices
    assert (device.index, device.model, device.minor) == ("0", "NVIDIA H100 80GB HBM3", "4")
    assert (device.pci_bus_id, device.driver_version) == ("00000000:53:00.0", "580.105.08")
    assert {*CLAIM, *PROFILING, *LINKS} <= device.fields
    got = values(last)
    got.pop("nvlink_links_up", None)  # by the bindings: see below
    assert {name: got[name] for name in (*CLAIM, *PROFILING, *LINKS)} == pytest.approx(
        {
            "busy": 1.0,
            "memory_busy": 0.4,
            "graphics_engine": 0.995,
            "sm": 0.98,
            "sm_occupancy": 0.125,
            "tensor": 0.82,
            "fp64": 0.0,
            "fp32": 0.015,
            "fp16": 0.0,
            "integer": 0.06,
            "dram": 0.31,
            "pcie_transmit": 3e9,
            "pcie_receive": 5e9,
            "nvlink_transmit": 40e9,
            "nvlink_receive": 41e9,
        }
    )
    mib = 2.0**20
    assert {name: got[name] for name in got if name not in (*CLAIM, *PROFILING, *LINKS)} == pytest.approx(
        {
            "tensor_imma": 0.0,
            "tensor_hmma": 0.82,
            "tensor_dfma": 0.0,
            "power": 612.5,
            "power_limit": 700.0,
            "energy": 5e6 + 612.5 * 3,
            "temperature": 55.0,
            "memory_temperature": 61.0,
            "sm_clock": 1.755e9,
            "memory_clock": 2.619e9,
            "memory_total": 81559 * mib,
            "memory_free": 1000 * mib,
            "memory_used": 80000 * mib,
            "memory_reserved": 559 * mib,
            "clock_event": 0.0,
            "pcie_replay": 3.0,
            "ecc_corrected": 7.0,
            "ecc_uncorrected": 0.0,
            "remapped_rows_corrected": 1.0,
            "remapped_rows_uncorrected": 0.0,
            "remap_failed": 0.0,
            "pcie_link_generation": 5.0,
            "pcie_link_generation_max": 5.0,
            "pcie_link_width": 16.0,
            "pcie_link_width_max": 16.0,
        }
    )
    assert absences(last) == {}
    assert not {reading.field for reading in first.readings} & {*CLAIM, *PROFILING} - set(absences(first))
    assert last.details["hostengine"] == "4.6.0"


def test_a_sample_covers_the_time_since_the_one_before(drive: Drive) -> None:
    shape = steps((0.0, 0.2), (1.3, 0.9))
    driver = drive(node(with_fields(gpu(), {1002: shape, 203: steps((0.0, 0.0), (1.3, 80.0))})))
    driver.run(0.0, 3.0)
    sm = [span for batch in driver.batches for span in spans(of(batch, "sm"))]
    assert sm == pytest.approx([(0.0, 1.1, 0.2), (1.1, 2.2, (0.2 * 0.2 + 0.9 * 0.9) / 1.1)])
    busy = [span for batch in driver.batches for span in spans(of(batch, "busy"))]
    assert busy == pytest.approx([(0.0, 1.1, 0.0), (1.1, 2.2, 0.8)])


def test_a_read_finds_one_sample_of_a_mean_at_most_and_the_gauge_stands_without_one(drive: Drive) -> None:
    """It is sampled a little less often than it is read, so that the latest sample is all there is."""
    observer = Observer(drive(node(gpu())))
    for second in range(3, 60):
        view = observer.until(float(second))[board()]
        assert {"busy", "sm", "dram", "pcie_transmit"} <= set(view.means)
        assert view.honest is not None
        batch = observer.driver.batches[-1]
        assert len(of(batch, "sm")) <= 1
        assert of(batch, "power")
        assert of(batch, "temperature")
    pieces = [span for batch in observer.driver.batches for span in spans(of(batch, "sm"))]
    assert len(pieces) == 53
    assert [a[1] for a in pieces[:-1]] == [b[0] for b in pieces[1:]]


def test_all_samples_since_the_last_read_are_used(drive: Drive) -> None:
    """A watch at 10 Hz, read once in three seconds."""
    shape = steps((0.0, 0.2), (7.03, 0.9), (7.04, 0.1), (20.333, 0.5))
    driver = drive(node(with_fields(gpu(), {1002: shape})), interval=0.1)
    driver.run(0.0, 30.0, 3.0)
    readings = [reading for batch in driver.batches for reading in of(batch, "sm")]
    pieces = spans(readings)
    assert len(pieces) == 272
    assert [a[1] for a in pieces[:-1]] == [b[0] for b in pieces[1:]]
    expected = 0.2 * 7.03 + 0.9 * 0.01 + 0.1 * (20.333 - 7.04) + 0.5 * (29.92 - 20.333)
    assert sum((end - start) * value for start, end, value in pieces) == pytest.approx(expected, rel=1e-6)


def test_reading_at_10_hz(drive: Drive) -> None:
    driver = drive(node(gpu()), interval=0.1)
    batches = driver.run(0.0, 3.0, 0.1)
    assert sum(len(spans(of(batch, "sm"))) for batch in batches) == 27
    assert len({reading.end for batch in batches for reading in of(batch, "power")}) == 3


def test_no_gauge_flickers_at_10_hz(drive: Drive) -> None:
    observer = Observer(drive(node(gpu()), interval=0.1), step=0.1)
    for tenth in range(30, 120):
        view = observer.until(tenth / 10)[board()]
        assert {"busy", "sm", "pcie_receive"} <= set(view.means)
        assert {"power", "sm_clock", "memory_used", "temperature", "pcie_link_width"} <= set(view.instants)


def test_clock_events_are_one_reading_each(drive: Drive) -> None:
    batch = drive(node(gpu())).read(0.0)
    active = {reading.label: reading.value for reading in of(batch, "clock_event")}
    assert set(active) == set(CLOCK_EVENTS.values())
    assert {label for label, value in active.items() if value} == {"power_cap", "sw_thermal"}


def test_each_xid_is_one_event(drive: Drive) -> None:
    """Two equal ones in a row are two (field case 40), what was before is nobody's, code 0 is none (field case 14)."""
    events = Events(((-5.0, 79.0), (1.25, 31.0), (1.5, 31.0), (2.5, 0.0), (3.5, 43.0)))
    driver = drive(node(with_fields(gpu(), {230: events})))
    driver.run(0.0, 5.0)
    seen = [(round(r.end - SHIFT, 4), r.label, r.value) for batch in driver.batches for r in of(batch, "xid")]
    assert seen == [(1.25, "31", 1.0), (1.5, "31", 1.0), (3.5, "43", 1.0)]


def test_samples_of_other_clients_from_before_are_not_ours(drive: Drive) -> None:
    driver = drive(node(gpu()))
    driver.run(0.0, 5.0)
    driver.source._disconnect()
    batch = driver.read(6.0)
    assert all(reading.end >= 6.0 + SHIFT for reading in batch.readings)
    assert not of(batch, "sm") or of(batch, "sm")[0].value is None


def test_blanks_are_absent_with_their_reason(drive: Drive) -> None:
    """Never scaled, and never a value carried on (field cases 1 to 4)."""
    fields: dict[int, Value] = {
        140: Blank.NOT_SUPPORTED,
        155: steps((0.0, 600.0), (2.5, Blank.UNSET)),
        156: Blank.NOT_PERMITTED,
        203: Blank.NOT_FOUND,
        250: Blank.UNSET,
        1004: Blank.NOT_SUPPORTED,
        1009: Blank.UNSET,
        1091: Blank.UNSET,
    }
    driver = drive(node(with_fields(gpu(), fields)))
    *_, before, _, after = driver.run(0.0, 4.0)
    assert values(before)["power"] == 600.0
    assert "power" not in values(after)
    assert absences(after) == {
        "memory_temperature": Absence.NOT_SUPPORTED,
        "power": Absence.BLANK,
        "energy": Absence.NOT_PERMITTED,
        "busy": Absence.NOT_FOUND,
        "memory_total": Absence.BLANK,
        "tensor": Absence.NOT_SUPPORTED,
        "pcie_transmit": Absence.BLANK,
    }
    assert values(after)["sm"] == 0.98


def test_fields_that_fall_silent_are_absent_after_a_while(drive: Drive) -> None:
    driver = drive(node(gpu(), value_faults=(silencing((150, 155), 2.5), silencing(1004, 2.5, 20.0))))
    driver.run(0.0, 3.0)
    assert values(driver.read(4.0))["power"] == 612.5
    for at in (5.0, 6.0, 7.0):
        driver.read(at)
    assert absences(driver.read(8.0)) == {"power": Absence.NO_DATA, "tensor": Absence.NO_DATA}
    assert values(driver.run(9.0, 15.0)[-1])["temperature"] == 55.0  # sampled every 5 s
    assert absences(driver.read(16.0))["temperature"] is Absence.NO_DATA
    driver.run(17.0, 21.0)
    assert of(driver.batches[-1], "tensor") == []
    (reading,) = [reading for batch in driver.run(22.0, 23.0) for reading in of(batch, "tensor")]
    assert spans([reading]) == [(20.9, 22.0, 0.82)]


def test_a_blank_in_between_leaves_a_gap_and_no_wrong_mean(drive: Drive) -> None:
    driver = drive(node(gpu(), value_faults=(blanking(1002, 2.0, 3.0),)))
    driver.run(0.0, 7.0)
    got = [span[:2] for batch in driver.batches for span in spans(of(batch, "sm"))]
    assert got == [(0.0, 1.1), (2.2, 3.3), (3.3, 4.4), (4.4, 5.5), (5.5, 6.6)]


def test_each_gpu_is_asked_what_it_supports(drive: Drive) -> None:
    """A mixed node: what GPU 0 has says nothing of the others (field case 27)."""
    driver = drive(node(geforce(0), v100(1), t4(2), gpu(3)))
    *_, batch = driver.run(0.0, 3.0)
    got = {number: set(values(batch, board(number))) & set(PROFILING) for number in range(4)}
    volta = set(PROFILING) - {"integer"}
    assert got == {0: set(), 1: volta, 2: volta - {"fp64"}, 3: set(PROFILING)}
    expected = {device.entity: device.fields & set(PROFILING) for device in batch.devices}
    assert expected == {board(number): fields for number, fields in got.items()}
    assert set(absences(batch, board(2)).values()) == {Absence.NOT_SUPPORTED}
    assert set(absences(batch, board(2))) >= {"fp64", "integer", "nvlink_transmit"}
    assert set(absences(batch, board(0))) >= set(PROFILING)
    assert values(batch, board(0))["busy"] == 1.0
    (problem,) = [problem for problem in batch.problems if problem.entity == board(0)]
    assert "profiling" in problem.what


def test_only_what_a_gpu_offers_is_watched(drive: Drive) -> None:
    driver = drive(node(t4(0)))
    driver.read(0.0)
    offered = 4 + 1 + 1 + 2 + 1
    plain = driver.report.open_watches - offered
    driver.source.close()
    other = drive(node(geforce(0)))
    other.read(0.0)
    assert other.report.open_watches == plain


def test_counted_bytes_are_preferred_once_they_have_proved_themselves(drive: Drive) -> None:
    """The rate is a whole number of bytes per second here, the counter is exact: that tells them apart."""
    fields: dict[int, Value] = {1009: 3.4e9, 1091: Counter(3.5e9, start=1e15)}
    driver = drive(node(with_fields(gpu(), fields)))
    driver.run(0.0, 10.0)
    sent = [span[2] for batch in driver.batches for span in spans(of(batch, "pcie_transmit"))]
    assert sent[:2] == [3.4e9, 3.4e9]
    assert sent[4:] == pytest.approx([3.5e9] * len(sent[4:]), rel=1e-6)
    received = [span[2] for batch in driver.batches for span in spans(of(batch, "pcie_receive"))]
    assert received == pytest.approx([5e9] * len(received), rel=1e-6)


def test_counted_bytes_in_another_unit_are_not_used(drive: Drive) -> None:
    driver = drive(node(with_fields(gpu(), {1091: Counter(3e9 / 1024, start=1e9)})))
    *_, last = driver.run(0.0, 10.0)
    assert values(last)["pcie_transmit"] == 3e9


def test_an_older_hostengine_without_counted_bytes(drive: Drive) -> None:
    driver = drive(node(gpu(), version=(4, 5, 3)))
    *_, last = driver.run(0.0, 3.0)
    assert values(last)["pcie_transmit"] == 3e9
    assert last.details["hostengine"] == "4.5.3"


def test_links_are_counted_where_bindings_and_library_fit(drive: Drive) -> None:
    states = (LinkState.UP,) * 17 + (LinkState.DOWN,)
    counts = set()
    for version in ((3, 3, 9), (4, 5, 3), (4, 6, 0)):
        scenario = node(dataclasses.replace(gpu(), links=(Links(states),)), gpu(1, links=()), version=version)
        driver = drive(scenario)
        batch = driver.read(0.0)
        counts.add(values(batch, board(0)).get("nvlink_links_up"))
        assert "nvlink_links_up" not in values(batch, board(1))
        if not any("different releases" in problem.what for problem in batch.problems):
            assert "nvlink_links_up" in batch.devices[0].fields
            assert values(batch, board(0))["nvlink_links_up"] == 17.0
        driver.source.close()
    assert 17.0 in counts
    assert counts <= {None, 17.0}


@pytest.mark.parametrize(("driver_there", "why"), [(True, ""), (False, ".*no NVIDIA driver")])
def test_no_gpu_at_all(drive: Drive, driver_there: bool, why: str) -> None:
    with pytest.raises(SourceError, match=f"lists no GPU{why}") as caught:
        drive(node(nvml=driver_there)).read(0.0)
    assert "nvidia-smi" in caught.value.remedy
