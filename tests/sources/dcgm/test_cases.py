"""What users of other exporters met (field cases 1 to 29), through the hostengine's player and the whole core."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable
from typing import Any

import pytest

from exporter.model import Entity
from exporter.trust import ProfilingState
from tests.abi.dcgm.codes import Blank
from tests.abi.dcgm.happenings import PROFILING, blanking, sticking
from tests.abi.dcgm.scenario import Gpu
from tests.abi.dcgm.values import Events, Value, Window, steps

from .conftest import Drive
from .nodes import ENGINES, LINKS, a100, board, geforce, gpu, instances, mig_gpu, node, uuid, with_fields
from .observing import Observer


@pytest.mark.parametrize("percent", [1980.0, 2619.0, 808334905.0, 127622.0])
def test_a_neighbours_field_in_place_of_the_claim_is_refused_and_counted(drive: Drive, percent: float) -> None:
    """Field case 7: an H100's clocks in MHz came as its utilization, a few times in millions."""
    wild = with_fields(gpu(), {203: steps((0.0, 50.0), (10.0, percent), (12.0, 50.0))})
    observer = Observer(drive(node(wild)))
    view = observer.until(11.0)[board()]
    assert "busy" not in view.means
    assert view.rejected["busy", "out_of_range"] >= 1
    after = observer.until(20.0)[board()]
    assert after.means["busy"] == pytest.approx(0.5)
    assert after.totals.seconds["busy"] == pytest.approx(0.5 * after.totals.observed["busy"])  # nothing of it was kept


def test_an_instance_above_one_is_not_shown_as_healthy(drive: Drive) -> None:
    """Field case 8: SM active of 1.294 on a GPU instance; its sibling 0.977."""
    high, healthy = instances()
    cut = gpu(instances=(dataclasses.replace(high, fields={**high.fields, 1002: 1.294}), healthy))
    views = Observer(drive(node(cut))).until(6.0)
    first, second = views[Entity(uuid(0), 1)], views[Entity(uuid(0), 2)]
    assert "sm" not in first.means
    assert first.rejected["sm", "out_of_range"] >= 1
    assert first.honest is None
    assert second.means["sm"] == pytest.approx(0.75)
    assert second.honest is not None


def test_a_ratio_that_rounds_above_one_counts_as_one(drive: Drive) -> None:
    views = Observer(drive(node(with_fields(gpu(), {1002: 1.004})))).until(6.0)
    assert views[board()].means["sm"] == 1.0


def test_an_instance_is_rated_by_itself(drive: Drive) -> None:
    """Field case 10: of each instance its own share, not rescaled to the board."""
    views = Observer(drive(node(mig_gpu()))).until(6.0)
    assert views[Entity(uuid(0), 1)].means["sm"] == pytest.approx(0.25)
    assert views[Entity(uuid(0), 2)].means["sm"] == pytest.approx(0.75)


def test_a_gpu_without_profiling_keeps_the_rest(drive: Drive) -> None:
    """Field cases 27, 29: others ended, or copied the claim."""
    view = Observer(drive(node(geforce()))).until(6.0)[board()]
    assert view.profiling is ProfilingState.UNSUPPORTED
    assert view.means["busy"] > 0
    assert "sm" not in view.means
    assert view.honest is None or view.honest.utilization is None


def test_a_zero_that_is_measured_stays_a_zero(drive: Drive) -> None:
    """Field case 14, the other way round: 0 is a value where the hostengine gives one."""
    view = Observer(drive(node(with_fields(gpu(), {1006: 0.0})))).until(6.0)[board()]
    assert view.means["fp64"] == 0.0


def test_links_that_a_board_does_not_have_are_left_out(drive: Drive) -> None:
    """Field case 1: 9223372036854775794 for NVLink and for the memory's temperature."""
    none = dict.fromkeys((1011, 1012, 140), Blank.NOT_SUPPORTED)
    observer = Observer(drive(node(with_fields(gpu(), none))))
    series = served(observer.served(6.0))
    assert "honest_gpu_pcie_receive_bytes_total" in series
    assert not {name for name in series if "nvlink_" in name and "links" not in name and "link_up" not in name}
    assert "honest_gpu_memory_temperature_celsius" not in series
    assert max(series.values()) < 1e17


@pytest.mark.parametrize("cut", [{"instances": instances()}, {"mig": (Window(),)}], ids=["instances", "mode alone"])
def test_a_board_with_mig_has_no_claim_and_says_why(drive: Drive, cut: dict[str, Any]) -> None:
    """Field case 2: the claim is blank there; a dashboard showed 9223372036854776000 %."""
    made = with_fields(gpu(**cut), {203: Blank.NOT_SUPPORTED, 204: Blank.NOT_SUPPORTED})
    observer = Observer(drive(node(made)))
    page = observer.served(6.0)
    assert "honest_gpu_busy_ratio" not in served(page)
    assert 'field="busy",reason="not_supported"} 0' in page


def test_blanks_until_profiling_is_ready_then_values_unchanged(drive: Drive) -> None:
    """Field case 3: an H100 whose doubles were all 140737488355328 and whose rates were 9223372036854775792."""
    ready = {1002: 0.9126, 1003: 0.2445, 1004: 0.2794, 1005: 0.2137}
    later: dict[int, Value] = {
        field: steps((0.0, Blank.UNSET), (10.0, ready.get(field, 0.25))) for field in (*ENGINES, *LINKS)
    }
    observer = Observer(drive(node(with_fields(gpu(), {**later, 155: 572.0}))))
    before = observer.until(9.0)[board()]
    assert not {"sm", "tensor", "dram", "pcie_receive", "nvlink_receive"} & set(before.means)
    assert before.honest is None
    after = observer.until(20.0)[board()]
    found = {name: after.means[name] for name in ("sm", "sm_occupancy", "tensor", "dram")}
    assert found == {"sm": 0.9126, "sm_occupancy": 0.2445, "tensor": 0.2794, "dram": 0.2137}
    assert after.instants["power"] == 572.0
    assert after.totals.seconds["sm"] == pytest.approx(0.9126 * after.totals.observed["sm"])


def test_a_blank_is_not_scaled_and_one_gpu_does_not_cost_the_page(drive: Drive) -> None:
    """Field case 4: 1.40737488355328e+16 percent, and `None * 100` that made the whole page a 500."""
    nothing = with_fields(gpu(), {field: Blank.UNSET for field in gpu().fields if field != 54})
    series = served(Observer(drive(node(nothing, gpu(1)))).served(8.0))
    assert max(series.values()) < 1e16
    assert series["honest_gpu_sm_active_ratio"] == pytest.approx(0.98)  # of the other GPU


@pytest.mark.parametrize("kind", [Blank.UNSET, Blank.NOT_FOUND, Blank.NOT_SUPPORTED, Blank.NOT_PERMITTED])
def test_nothing_is_written_where_there_is_nothing(drive: Drive, caplog: pytest.LogCaptureFixture, kind: Blank) -> None:
    """Field cases 15, 16: `N/A` cost a whole file, `[Not Supported]` filled a log with errors."""
    nothing = with_fields(gpu(), {field: kind for field in gpu().fields if field not in (54, 203)})
    page = Observer(drive(node(nothing))).served(8.0)
    assert served(page)["honest_gpu_busy_ratio"] == 1.0
    assert "n/a" not in page.lower()
    assert "nan" not in {line.rsplit(" ", 1)[1].lower() for line in page.splitlines() if not line.startswith("#")}
    assert [record.message for record in caplog.records if record.levelno >= logging.ERROR] == []


def test_absent_stays_absent_whatever_the_release_prints(drive: Drive) -> None:
    """Field case 14: 4.4 printed 0 for an Xid that never was, 4.5 nothing."""
    for fields in ({230: 0.0}, {230: Events(())}):
        series = served(Observer(drive(node(with_fields(gpu(), fields)))).served(6.0))
        assert "honest_gpu_xid_errors_total" not in series


def test_bytes_of_links_are_not_watched_on_instances(drive: Drive, caplog: pytest.LogCaptureFixture) -> None:
    """Field case 12: they exist on the board alone; others logged -14 for each instance and read."""
    observer = Observer(drive(node(mig_gpu())))
    views = observer.until(10.0)
    assert views[board()].means["pcie_receive"] == pytest.approx(5e9)
    for instance in (Entity(uuid(0), 1), Entity(uuid(0), 2)):
        assert not {"pcie_receive", "nvlink_receive"} & (set(views[instance].means) | set(views[instance].absences))
    assert [record.message for record in caplog.records if record.levelno >= logging.WARNING] == []


def test_fields_that_scatter_are_not_joined(drive: Drive) -> None:
    """Field case 23: one read has SM active, the next one the tensor pipe, and never both for the same second."""

    def every_other(value: float, phase: int) -> Value:
        return steps(*((float(second), value if second % 2 == phase else Blank.UNSET) for second in range(40)))

    scatter = with_fields(gpu(), {1002: every_other(0.777, 0), 1004: every_other(0.178, 1)})
    views = Observer(drive(node(scatter, gpu(1)))).until(30.0)
    view = views[board()]
    assert view.totals.observed.get("parts", 0.0) == 0.0
    assert view.honest is None
    assert views[board(1)].totals.observed["parts"] > 20.0


@pytest.mark.parametrize("make", [gpu, a100], ids=["gpm", "module"])
def test_stuck_at_zero_is_a_state_of_its_gpu_and_not_idle(drive: Drive, make: Callable[[int], Gpu]) -> None:
    """Field cases 18, 19, 21: after an Xid the engines read 0 while the claim says 100; the peer goes on."""
    xid = {230: Events(((10.0, 31.0),))}
    stuck = sticking((1001, 1016), 0.0, 10.0, gpu=0)
    observer = Observer(drive(node(with_fields(make(0), xid), make(1), value_faults=(stuck,))))
    views = observer.until(20.0)
    view, peer = views[board(0)], views[board(1)]
    assert view.profiling is ProfilingState.STUCK_AT_ZERO
    assert "sm" not in view.means
    assert view.honest is None
    assert view.means["busy"] == 1.0
    assert view.totals.events["xid", "31"] == 1
    assert peer.profiling is ProfilingState.OK
    assert peer.means["sm"] == pytest.approx(0.98)


def test_blank_for_long_is_paused(drive: Drive) -> None:
    """Field case 20: after Xid 31, until somebody watches anew or resumes."""
    observer = Observer(drive(node(a100(), value_faults=(blanking(PROFILING, 10.0),))))
    view = observer.until(30.0)[board()]
    assert view.profiling is ProfilingState.PAUSED
    assert "sm" not in view.means


def served(page: str) -> dict[str, float]:
    """The last value of each family's series, by the name that queries use."""
    lines = [line for line in page.splitlines() if not line.startswith("#")]
    return {line.split("{")[0].split(" ")[0]: float(line.rsplit(" ", 1)[1]) for line in lines}
