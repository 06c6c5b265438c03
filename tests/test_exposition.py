"""Both formats, checked by the reference parsers of prometheus_client; one Snapshot, one set of bytes."""

from __future__ import annotations

import gzip

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.openmetrics import parser as openmetrics_parser
from prometheus_client.parser import text_string_to_metric_families as parse_text

from exporter.clock import VirtualClock
from exporter.core.pipeline import Pipeline
from exporter.core.snapshot import Snapshot
from exporter.exposition import Rendered
from exporter.metrics.catalogue import Selection, groups, samples
from exporter.metrics.family import Family, Profile, Sample
from exporter.metrics.own import OwnState
from exporter.model import Batch, Device, Entity
from tests.core.building import FULL, readings


def snapshot(model: str = "NVIDIA H100 80GB HBM3") -> Snapshot:
    """Two GPUs after ten windows."""
    clock = VirtualClock()
    pipeline = Pipeline(clock, 1.0)
    devices = [Device(Entity(f"GPU-{k}"), str(k), FULL, model=model) for k in range(2)]
    values = dict.fromkeys(FULL, 0.5)
    for _ in range(10):
        start = clock.monotonic()
        clock.advance(1.0)
        made = [r for d in devices for r in readings(start, clock.monotonic(), values, d.entity)]
        pipeline.absorb(Batch("test", clock.monotonic(), devices, made))
    return pipeline.publish()


def collect(taken: Snapshot) -> dict[Family, list[Sample]]:
    return samples(taken, groups(OwnState()), Selection(Profile.FULL))


def test_both_formats_say_the_same_to_the_reference_parsers() -> None:
    rendered = Rendered(snapshot(), collect)
    plain = rendered.get((False, False)).decode()
    om = rendered.get((True, False)).decode()
    one = {(s.name, tuple(sorted(s.labels.items()))): s.value for f in parse_text(plain) for s in f.samples}
    parsed = openmetrics_parser.text_string_to_metric_families(om)  # type: ignore[no-untyped-call]
    two = {(s.name, tuple(sorted(s.labels.items()))): s.value for f in parsed for s in f.samples}
    moving = ("process_cpu", "process_resident")
    assert {k: v for k, v in one.items() if not k[0].startswith(moving)} == {
        k: v for k, v in two.items() if not k[0].startswith(moving)
    }
    assert one["honest_gpu_busy_seconds_total", (("gpu", "0"), ("uuid", "GPU-0"))] == 5.0
    assert om.endswith("# EOF\n")


def test_no_series_twice() -> None:
    lines = Rendered(snapshot(), collect).get((False, False)).decode().splitlines()
    series = [line.rsplit(" ", 1)[0] for line in lines if not line.startswith("#")]
    assert len(set(series)) == len(series)


def test_bytes_are_kept_and_gzip_is_the_same_text() -> None:
    rendered = Rendered(snapshot(), collect)
    plain = rendered.get((True, False))
    packed = rendered.get((True, True))
    assert rendered.get((True, False)) is plain
    assert rendered.get((True, True)) is packed
    assert gzip.decompress(packed) == plain


def test_series_a_gpu_within_the_budgets() -> None:
    taken = snapshot()
    for profile, budget in ((Profile.MINIMAL, 30), (Profile.DEFAULT, 100)):
        found = samples(taken, groups(OwnState()), Selection(profile))
        assert sum('uuid="GPU-0"' in sample.labels for listed in found.values() for sample in listed) <= budget


@given(st.text())
def test_any_label_value_survives(model: str) -> None:
    rendered = Rendered(snapshot(model), collect)
    plain = rendered.get((False, False)).decode()
    found = [s.labels.get("model", "") for f in parse_text(plain) for s in f.samples if s.name == "honest_gpu_info"]
    assert found == [model, model]
