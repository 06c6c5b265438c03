"""The exporter's own process: what prometheus_client's collectors say of it, without them."""

import pytest
from prometheus_client import PlatformCollector, ProcessCollector
from prometheus_client.samples import Sample as Reference

from exporter.clock import VirtualClock
from exporter.core.pipeline import Pipeline
from exporter.metrics.family import Sample
from exporter.metrics.process import process_group


def reported() -> dict[str, Sample]:
    group = process_group()
    return {sample.family.series_name: sample for sample in group.collect(Pipeline(VirtualClock(), 1.0).publish())}


def reference() -> dict[str, Reference]:
    collectors = (ProcessCollector(registry=None), PlatformCollector(registry=None))
    return {sample.name: sample for each in collectors for metric in each.collect() for sample in metric.samples}


def test_the_same_series_with_the_same_values() -> None:
    ours, theirs = reported(), reference()
    assert set(ours) == set(theirs)
    near = {"process_cpu_seconds_total": 0.05}
    near |= {"process_resident_memory_bytes": 1e6, "process_virtual_memory_bytes": 1e7}
    for name, sample in theirs.items():
        assert ours[name].value == pytest.approx(sample.value, rel=0, abs=near.get(name, 1.0)), name
    for key, value in theirs["python_info"].labels.items():
        assert f'{key}="{value}"' in ours["python_info"].labels


def test_the_same_words_and_types() -> None:
    families = {family.series_name: family for family in process_group().families}
    for collector in (ProcessCollector(registry=None), PlatformCollector(registry=None)):
        for metric in collector.collect():
            family = families[metric.samples[0].name]
            assert family.help.rstrip(".") == metric.documentation.rstrip(".")
            assert family.type.value in (metric.type, "info")  # python_info is a gauge of 1 there


def test_what_cannot_be_read_is_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str) -> list[str]:
        raise PermissionError(path)

    monkeypatch.setattr("os.listdir", refuse)
    assert "process_open_fds" not in reported()
    assert "process_resident_memory_bytes" in reported()
