"""Links that are reported at 0 for ever (field cases 25, 26): what can be told of them, and what cannot."""

from __future__ import annotations

import pytest

from exporter.core.snapshot import EntityView, Snapshot
from exporter.metrics import quality
from exporter.metrics.family import Sample
from exporter.model import Absence
from exporter.trust import THRESHOLDS
from tests.abi.dcgm.codes import Blank
from tests.abi.dcgm.happenings import sticking
from tests.abi.dcgm.scenario import Gpu
from tests.abi.dcgm.values import Counter, Value, steps

from .conftest import Drive
from .driving import absences, values
from .nodes import a100, board, gpu, node, with_fields
from .observing import Observer

ZERO_PCIE: dict[int, Value] = {1009: 0.0, 1010: 0.0}
ZERO_NVLINK: dict[int, Value] = {1011: 0.0, 1012: 0.0}
NVLINKS = ("nvlink_transmit", "nvlink_receive")


def settled(drive: Drive, made: Gpu, seconds: float = 20.0) -> EntityView:
    return Observer(drive(node(made))).until(seconds)[board()]


def test_pcie_at_zero_while_the_gpus_own_totals_move_is_refused(drive: Drive) -> None:
    view = settled(drive, with_fields(gpu(), ZERO_PCIE))
    assert "pcie_transmit" not in view.means
    assert view.absences["pcie_transmit"] is view.absences["pcie_receive"] is Absence.CONTRADICTED
    assert view.rejected["pcie_receive", "contradicted"] >= 10
    assert view.means["sm"] == pytest.approx(0.98)  # it costs nothing else


def test_in_whatever_unit_the_totals_are(drive: Drive) -> None:
    view = settled(drive, with_fields(gpu(), {**ZERO_PCIE, 1091: Counter(3e6), 1092: Counter(5e6)}))
    assert view.absences["pcie_transmit"] is Absence.CONTRADICTED


def test_an_idle_link_stays_at_zero(drive: Drive) -> None:
    """Also where a few bytes are counted, which GPM's MiB/s may round away."""
    idle: dict[int, Value] = {**ZERO_PCIE, **ZERO_NVLINK, 1091: Counter(2e5), 1092: Counter(0.0), 449: 3.0}
    view = settled(drive, with_fields(gpu(), idle))
    assert {name: view.means[name] for name in ("pcie_transmit", "pcie_receive", *NVLINKS)} == {
        **dict.fromkeys(("pcie_transmit", "pcie_receive"), 0.0),
        **dict.fromkeys(NVLINKS, 0.0),
    }
    assert not view.suspects


@pytest.mark.parametrize("made", [gpu(), a100()], ids=["h100", "a100"])
def test_nvlink_at_zero_while_the_driver_counts_is_refused(drive: Drive, made: Gpu) -> None:
    """Field case 26: a DGX A100."""
    view = settled(drive, with_fields(made, {**ZERO_NVLINK, 449: 81_000.0}))
    assert all(view.absences[name] is Absence.CONTRADICTED for name in NVLINKS)
    assert not set(NVLINKS) & set(view.means)
    assert view.rejected["nvlink_transmit", "contradicted"] >= 10
    assert view.means["sm"] == pytest.approx(0.98)


def test_bursts_between_two_samples_of_the_counter_contradict_nothing(drive: Drive) -> None:
    """At 10 Hz the counter is sampled once a second, and says that there was traffic in nine zeros of ten, too."""
    bursts = steps(*((tenth / 10, 4e9 if tenth % 10 == 0 else 0.0) for tenth in range(200)))
    driver = drive(node(with_fields(gpu(), {1011: bursts, 1012: bursts, 449: 400.0})), interval=0.1)
    driver.run(0.0, 15.0, 0.1)
    assert not [absences(batch) for batch in driver.batches if Absence.CONTRADICTED in absences(batch).values()]


def test_a_quiet_link_does_not_make_false_zeros_true(drive: Drive) -> None:
    view = settled(drive, with_fields(gpu(), {**ZERO_NVLINK, 449: steps((0.0, 81_000.0), (10.0, 0.0))}))
    assert view.absences["nvlink_transmit"] is Absence.CONTRADICTED


def test_a_value_again_is_believed_at_once(drive: Drive) -> None:
    made = with_fields(gpu(), {449: 81_000.0})
    driver = drive(node(made, value_faults=(sticking((1011, 1012), 0.0, 5.0, 20.0),)))
    driver.run(0.0, 18.0)
    assert absences(driver.batches[-1])["nvlink_transmit"] is Absence.CONTRADICTED
    driver.run(19.0, 24.0)
    assert values(driver.batches[-1])["nvlink_transmit"] == 40e9


@pytest.mark.parametrize("blank", [Blank.UNSET, 2147483632.0])
def test_a_counter_that_is_blank_says_nothing(drive: Drive, blank: Blank | float) -> None:
    view = settled(drive, with_fields(gpu(), {**ZERO_NVLINK, 449: blank}))
    assert view.means["nvlink_transmit"] == 0.0


def test_before_hopper_pcie_at_zero_for_minutes_of_kernels_is_marked(drive: Drive) -> None:
    """Field case 25: an L40S, whose PCIe nothing else in DCGM counts. The value stays: it cannot be proved false."""
    observer = Observer(drive(node(with_fields(a100(), ZERO_PCIE))))
    assert not observer.until(THRESHOLDS.suspect_seconds - 10)[board()].suspects
    view = observer.until(THRESHOLDS.suspect_seconds + 10)[board()]
    assert view.suspects == {"pcie_transmit", "pcie_receive"}
    assert view.means["pcie_receive"] == 0.0
    marked = {sample.labels.split("field=")[1] for sample in samples(view)}
    assert marked == {'"pcie_transmit"', '"pcie_receive"'}


def samples(view: EntityView) -> list[Sample]:
    found = quality.GROUP.collect(Snapshot(1, 0.0, entities=(view,)))
    return [sample for sample in found if sample.family is quality.SUSPECT]
