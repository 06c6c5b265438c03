"""The exporter's counters against what really happened, for every workload and several sampling intervals."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import pytest

from exporter.core.snapshot import EntityView
from exporter.fields import FIELDS, Kind
from exporter.sources.simulated.node import SimulatedGpu
from exporter.sources.simulated.script import PATTERN
from exporter.sources.simulated.truth import PARTS, amount, finest, parts
from exporter.sources.simulated.workloads import WORKLOADS
from exporter.trust import ProfilingState
from tests.sources.simulated.playing import Played, play

TEN_MINUTES, TWO_TURNS, ONE_TURN = 600.0, 125.3, 65.05
# interval, seconds: 1 Hz over ten minutes is the promise; the others fall across the workloads' own seconds
RUNS = ((1.0, TEN_MINUTES), (0.1, ONE_TURN), (0.7, TWO_TURNS), (5.0, TEN_MINUTES))
PROMISED = 0.01  # relative (docs/architecture.md, Budgets)
EXACT = 1e-6  # what is held here: nothing is lost at all, but rounding


@cache
def run(interval: float, seconds: float) -> Played:
    return play(interval, seconds)


def compared(interval: float, seconds: float, workload: str) -> Iterator[tuple[Played, SimulatedGpu, EntityView]]:
    """The board of the workload, and its instances."""
    played = run(interval, seconds)
    found = [track for track in played.tracks if track.workload == workload]
    assert found
    for track in found:
        yield played, track, played.views[track.device.entity]


each_run = pytest.mark.parametrize(("interval", "seconds"), RUNS)
each_workload = pytest.mark.parametrize("workload", WORKLOADS)


@each_run
@each_workload
def test_every_second_and_byte_is_counted(interval: float, seconds: float, workload: str) -> None:
    for _, track, view in compared(interval, seconds, workload):
        counted = 0
        for field in view.device.fields:
            kind = FIELDS[field].kind
            if kind in (Kind.RATIO, Kind.RATE):
                book = view.totals.seconds if kind is Kind.RATIO else view.totals.amounts
                true = amount(track, field, 0.0, seconds)
                assert book[field] == pytest.approx(true, rel=EXACT, abs=1e-6), field
                assert view.totals.observed[field] == pytest.approx(seconds, rel=EXACT), field
                counted += 1
        assert counted >= 9 or view.device.mig_enabled


@each_run
@each_workload
def test_energy_and_clock_events(interval: float, seconds: float, workload: str) -> None:
    for _, track, view in compared(interval, seconds, workload):
        if "power" in view.device.fields:
            assert view.totals.amounts["energy"] == pytest.approx(amount(track, "power", 0.0, seconds), rel=EXACT)
        for (field, label), active in view.totals.active.items():
            true = amount(track, f"{field}:{label}", 0.0, seconds)
            assert active == pytest.approx(true, rel=PROMISED, abs=1e-9), label


@each_run
@each_workload
def test_the_parts_are_those_of_the_sampling_windows(interval: float, seconds: float, workload: str) -> None:
    for played, track, view in compared(interval, seconds, workload):
        if view.device.mig_enabled:
            assert not view.totals.parts
            continue
        true = parts(track, played.windows)
        assert view.totals.parts.keys() == set(PARTS)
        for part, booked in view.totals.parts.items():
            assert booked == pytest.approx(true[part], rel=EXACT, abs=1e-6), part
        observed = view.totals.observed["parts"]
        assert observed == pytest.approx(seconds, rel=EXACT)
        assert sum(view.totals.parts.values()) == pytest.approx(observed, rel=1e-9)


@each_run
@each_workload
def test_nothing_is_refused_or_distrusted(interval: float, seconds: float, workload: str) -> None:
    for _, _, view in compared(interval, seconds, workload):
        assert not view.rejected
        assert not view.absences
        assert view.totals.exceeded == 0
        expected = ProfilingState.UNSUPPORTED if view.device.mig_enabled else ProfilingState.OK
        assert view.profiling is expected


@each_workload
def test_only_the_split_of_sm_time_depends_on_how_finely_one_looks(workload: str) -> None:
    """Hollow and idle at every instant equal those of 1 s windows; working + stalled too, but not each of them."""
    windows = [(float(k), float(k + 1)) for k in range(int(PATTERN))]
    for _, track, view in compared(1.0, TEN_MINUTES, workload):
        if view.device.mig_enabled:
            continue
        coarse, fine = parts(track, windows), finest(track)
        for part in ("hollow", "idle"):
            assert coarse[part] == pytest.approx(fine[part], abs=1e-6)
        assert coarse["working"] + coarse["stalled"] == pytest.approx(fine["working"] + fine["stalled"], abs=1e-6)
        assert sum(fine.values()) == pytest.approx(PATTERN)


def test_the_truth_is_what_was_written_down() -> None:
    """Independent of the timeline: sums over the events themselves, on boards where nothing is cut off at 1."""
    for track in run(1.0, TEN_MINUTES).tracks:
        if track.device.mig_enabled:
            continue
        kernels = track.activity.kernels
        for channel in ("tensor", "dram", "fp32", "nvlink_transmit"):
            if channel in track.timeline.channels:
                written = sum(k.pipes[channel] * (k.end - k.start) for k in kernels)
                assert amount(track, channel, 0.0, PATTERN) == pytest.approx(written, rel=1e-9), channel
        busy, until = 0.0, 0.0
        for kernel in sorted(kernels, key=lambda k: k.start):
            busy += max(0.0, kernel.end - max(until, kernel.start))
            until = max(until, kernel.end)
        assert amount(track, "busy", 0.0, PATTERN) == pytest.approx(busy, rel=1e-9)
        if track.device.entity.gpu_instance is None:
            for direction, channel in (("host_to_device", "pcie_receive"), ("device_to_host", "pcie_transmit")):
                moved = sum(copy.bytes for copy in track.activity.copies if copy.direction == direction)
                assert amount(track, channel, 0.0, PATTERN) == pytest.approx(moved, rel=1e-9)


def test_the_truth_of_a_case_worked_out_by_hand() -> None:
    """tiny-kernels: one block of 132 for about 0.9 s of each second, over a time that is no whole pattern."""
    (track,) = (t for t in run(1.0, TEN_MINUTES).tracks if t.workload == "tiny-kernels")
    kernels = track.activity.kernels
    until = PATTERN + 3.0  # every kernel lies within its second
    lengths = [k.end - k.start for k in kernels]
    assert amount(track, "busy", 0.0, until) == pytest.approx(sum(lengths) + sum(lengths[:3]))
    assert amount(track, "busy", PATTERN, until) == pytest.approx(sum(lengths[:3]))
    made = parts(track, [(0.0, 1.0), (1.0, 2.0)])
    sm = sum((k.sm or 0.0) * (k.end - k.start) for k in kernels[:2])
    assert made["hollow"] == pytest.approx(sum(lengths[:2]) - sm)
    assert made["idle"] == pytest.approx(2.0 - sum(lengths[:2]))
    assert made["working"] + made["stalled"] == pytest.approx(sm)
