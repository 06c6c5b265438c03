"""What a last-value gauge scraped every 30 s says of each simulated workload, next to a counter and the truth.

One run of ten virtual minutes at 1 Hz. The gauge reader averages the samples that the scrapes happened to meet: for
each of the 30 possible offsets of the scrape against the workload one result, of which the first and the worst are
shown. The counter reader divides the increase of the seconds by that of the observed seconds, as rate() does.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

from exporter.clock import VirtualClock
from exporter.core.pipeline import Pipeline
from exporter.core.sampler import Sampler, run_fast
from exporter.core.snapshot import EntityView, Snapshot
from exporter.core.workers import InlineWorker
from exporter.sources.simulated.node import SimulatedGpu, build_node
from exporter.sources.simulated.script import PATTERN
from exporter.sources.simulated.source import simulated_source
from exporter.sources.simulated.truth import PARTS, amount, finest, parts
from exporter.sources.simulated.workloads import WORKLOADS

SECONDS, INTERVAL, SCRAPE = 600, 1.0, 30
WINDOWS = [(float(second), second + INTERVAL) for second in range(SECONDS)]


def _play() -> list[Snapshot]:
    """A Snapshot a second; the first is before any window."""
    names = tuple(WORKLOADS)
    source = simulated_source(names, len(names), loop=False, duration=SECONDS)
    clock, shown = VirtualClock(), list[Snapshot]()
    sampler = Sampler([InlineWorker(source)], Pipeline(clock, INTERVAL), clock, shown.append, interval=INTERVAL)
    run_fast(sampler, clock, INTERVAL, threading.Event())
    return shown[: SECONDS + 1]


def _gauge(view: EntityView, quantity: str) -> float:
    """What a scrape would have met: the last closed window."""
    if quantity != "working":
        return view.means[quantity]
    assert view.honest is not None
    return view.honest.parts["working"]


def _counter(view: EntityView, quantity: str) -> float:
    totals = view.totals
    if quantity == "working":
        return totals.parts["working"] / totals.observed["parts"]
    return totals.seconds[quantity] / totals.observed[quantity]


def _truth(track: SimulatedGpu, quantity: str) -> float:
    if quantity == "working":
        return parts(track, WINDOWS)["working"] / SECONDS
    return amount(track, quantity, 0.0, SECONDS) / SECONDS


def _row(track: SimulatedGpu, views: Sequence[EntityView], quantity: str) -> str:
    true, counted = _truth(track, quantity), _counter(views[-1], quantity)
    values = [_gauge(view, quantity) for view in views[1:]]
    means = [sum(values[offset::SCRAPE]) / len(values[offset::SCRAPE]) for offset in range(SCRAPE)]
    worst = max(means, key=lambda mean: abs(mean - true))
    single = max(values, key=lambda value: abs(value - true))
    return (
        f"| {_name(track)} | {quantity} | {true:.4f} | {counted:.4f} | {_error(counted, true)} | {means[0]:.4f} "
        f"| {worst:.4f} | {_error(worst, true)} | {single:.4f} |"
    )


def _error(value: float, true: float) -> str:
    return f"{abs(value - true) / true:.2%}" if true else f"{abs(value - true):.4f} (of 0)"


def _name(track: SimulatedGpu) -> str:
    instance = track.device.entity.gpu_instance
    return track.workload if instance is None else f"{track.workload}/gi{instance}"


def _main() -> None:
    shown = _play()
    names = list(WORKLOADS.values())
    tracks = [track for track in build_node(names, len(names)) if not track.device.mig_enabled]
    print(f"{SECONDS} s at {1 / INTERVAL:g} Hz; gauge scraped every {SCRAPE} s\n")
    print(
        "| workload | quantity | truth | counter | error | gauge, mean of scrapes | worst offset | error "
        "| worst single scrape |\n|---|---|---|---|---|---|---|---|---|"
    )
    for track in tracks:
        entity = track.device.entity
        views = [view for snapshot in shown for view in snapshot.entities if view.device.entity == entity]
        claim = "busy" if entity.gpu_instance is None else "graphics_engine"
        for quantity in (claim, "sm", "working"):
            print(_row(track, views, quantity))
    print(
        "\nThe parts are not linear: shares of the time, from the means of 1 s windows (what the counters hold) and at "
        "every instant.\n\n| workload | "
        + " | ".join(f"{part} 1 s / instant" for part in PARTS)
        + " |\n|---|---|---|---|---|"
    )
    for track in tracks:
        coarse, fine = parts(track, WINDOWS), finest(track)
        cells = (f"{coarse[part] / SECONDS:.4f} / {fine[part] / PATTERN:.4f}" for part in PARTS)
        print(f"| {_name(track)} | {' | '.join(cells)} |")


if __name__ == "__main__":
    _main()
