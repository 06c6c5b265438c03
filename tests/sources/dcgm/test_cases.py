"""What users of other exporters met (CASES 1 and 2), through the hostengine's player and the whole core."""

from __future__ import annotations

import dataclasses

import pytest

from exporter.core.quality import ProfilingState
from exporter.model import Entity
from tests.abi.dcgm.scenario import steps

from .conftest import Drive
from .nodes import board, geforce, gpu, instances, mig_gpu, node, uuid, with_fields
from .observing import Observer


@pytest.mark.parametrize("percent", [1980.0, 2619.0, 808334905.0, 127622.0])
def test_a_neighbours_field_in_place_of_the_claim_is_refused_and_counted(drive: Drive, percent: float) -> None:
    """CASES 7: an H100's clocks in MHz came as its utilization, a few times in millions."""
    wild = with_fields(gpu(), {203: steps((0.0, 50.0), (10.0, percent), (12.0, 50.0))})
    observer = Observer(drive(node(wild)))
    view = observer.until(11.0)[board()]
    assert "busy" not in view.means
    assert view.rejected["busy", "out_of_range"] >= 1
    after = observer.until(20.0)[board()]
    assert after.means["busy"] == pytest.approx(0.5)
    assert after.totals.seconds["busy"] == pytest.approx(0.5 * after.totals.observed["busy"])  # nothing of it was kept


def test_an_instance_above_one_is_not_shown_as_healthy(drive: Drive) -> None:
    """CASES 8: SM active of 1.294 on a GPU instance; its sibling 0.977."""
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
    """CASES 10: of each instance its own share, not rescaled to the board."""
    views = Observer(drive(node(mig_gpu()))).until(6.0)
    assert views[Entity(uuid(0), 1)].means["sm"] == pytest.approx(0.25)
    assert views[Entity(uuid(0), 2)].means["sm"] == pytest.approx(0.75)


def test_a_gpu_without_profiling_keeps_the_rest(drive: Drive) -> None:
    """CASES 27, 29: others ended, or copied the claim."""
    view = Observer(drive(node(geforce()))).until(6.0)[board()]
    assert view.profiling is ProfilingState.UNSUPPORTED
    assert view.means["busy"] > 0
    assert "sm" not in view.means
    assert view.honest is None or view.honest.utilization is None


def test_a_zero_that_is_measured_stays_a_zero(drive: Drive) -> None:
    """CASES 14, the other way round: 0 is a value where the hostengine gives one."""
    view = Observer(drive(node(with_fields(gpu(), {1006: 0.0})))).until(6.0)[board()]
    assert view.means["fp64"] == 0.0
