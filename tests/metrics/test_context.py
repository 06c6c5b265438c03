"""What a board and its instances have of context, whichever source brings it."""

from __future__ import annotations

from exporter.clock import VirtualClock
from exporter.core.pipeline import Pipeline
from exporter.metrics import context
from exporter.model import Batch, Device
from tests.core.building import readings
from tests.metrics.whose import SLICE, series


def test_memory_of_an_instance_is_nvmls_where_dcgm_has_none() -> None:
    """Field case 50: an instance with a measurement and without its memory."""
    clock = VirtualClock()
    pipeline = Pipeline(clock, 1.0)
    measured, memory = {"graphics_engine": 0.5, "sm": 0.25}, {"memory_used": 3e9, "memory_total": 20e9}
    for _ in range(3):
        start = clock.monotonic()
        clock.advance(1.0)
        for source, values in (("dcgm", measured), ("nvml", memory)):
            of = Device(SLICE, "1", frozenset(values), mig_profile="2g.20gb")
            pipeline.absorb(Batch(source, clock.monotonic(), (of,), readings(start, clock.monotonic(), values, SLICE)))
    snapshot = pipeline.publish()
    labels = 'gpu="1",uuid="GPU-2",gpu_instance="7"'
    found = series(snapshot, context.GROUP)
    assert found[f"honest_gpu_memory_used_bytes{{{labels}}}"] == 3e9
    assert found[f"honest_gpu_memory_total_bytes{{{labels}}}"] == 20e9
    (view,) = snapshot.entities
    assert view.means == measured
