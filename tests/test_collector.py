"""The collector for prometheus_client is the reference: the daemon's own renderer says the same."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Metric, generate_latest
from prometheus_client.openmetrics import parser as openmetrics_parser
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics
from prometheus_client.parser import text_string_to_metric_families

from exporter.collector import SnapshotCollector
from exporter.exposition import openmetrics, text
from exporter.metrics.catalogue import GROUPS, Selection, samples
from exporter.metrics.family import Family, Group, Profile, Sample, Type, labels
from tests.golden.test_golden import INPUTS, last
from tests.test_exposition import snapshot

Families = Mapping[Family, Iterable[Sample]]


def parse_text(page: bytes) -> list[Metric]:
    return list(text_string_to_metric_families(page.decode()))


def parse_openmetrics(page: bytes) -> list[Metric]:
    return list(openmetrics_parser.text_string_to_metric_families(page.decode()))  # type: ignore[no-untyped-call]


FORMATS = [
    pytest.param(text, generate_latest, parse_text, id="text"),
    pytest.param(openmetrics, generate_openmetrics, parse_openmetrics, id="openmetrics"),
]


@pytest.mark.parametrize(("ours", "theirs", "parse"), FORMATS)
@pytest.mark.parametrize("name", INPUTS)
def test_the_renderer_says_what_prometheus_client_says(
    name: str,
    ours: Callable[[Families], bytes],
    theirs: Callable[[SnapshotCollector], bytes],
    parse: Callable[[bytes], list[Metric]],
) -> None:
    """Families in the same order, with type, help and unit; samples in the same order, with labels and value."""
    make, profile = INPUTS[name]
    taken = last(make())
    rendered = parse(ours(samples(taken, GROUPS, Selection(profile))))
    assert len(rendered) > 30
    assert rendered == parse(theirs(SnapshotCollector(lambda: taken, selection=Selection(profile))))


EVERY = (
    *(
        Family(f"of_{kind.value}", kind, "", f'A \\ "{kind.value}"\nin two lines.', labels=("who",))
        for kind in (Type.GAUGE, Type.COUNTER, Type.INFO)
    ),
    Family("wait_seconds", Type.HISTOGRAM, "seconds", "How long.", labels=()),
)


def every_type(value: float, who: str) -> Group:
    gauge, counter, info, histogram = EVERY
    found = [
        Sample(gauge, labels(who=who), value),
        Sample(gauge, "", 0.0),
        Sample(counter, labels(who=who), 2.5),
        Sample(info, labels(who=who, other="x"), 1.0),
        *(Sample(histogram, f'le="{bound}"', count, "_bucket") for bound, count in (("0.5", 1.0), ("+Inf", 3.0))),
        Sample(histogram, "", 3.0, "_count"),
        Sample(histogram, "", 4.25, "_sum"),
    ]
    return Group("All types", EVERY, lambda taken: found)


@pytest.mark.parametrize(("ours", "theirs", "parse"), FORMATS)
@given(value=st.floats(allow_nan=False), who=st.text(max_size=20))
def test_every_type_value_and_label(
    ours: Callable[[Families], bytes],
    theirs: Callable[[SnapshotCollector], bytes],
    parse: Callable[[bytes], list[Metric]],
    value: float,
    who: str,
) -> None:
    taken, groups = snapshot(), [every_type(value, who)]
    rendered = parse(ours(samples(taken, groups, Selection())))
    assert len(rendered) == len(EVERY)
    assert rendered == parse(theirs(SnapshotCollector(lambda: taken, groups)))


def test_half_a_surrogate_pair_is_a_question_mark_as_in_the_daemon() -> None:
    """Names of processes and files may have one; it has no UTF-8."""
    taken, groups = snapshot(), [every_type(1.0, "job \ud800")]
    page = generate_latest(SnapshotCollector(lambda: taken, groups))
    assert b'who="job ?"' in page
    assert parse_text(page) == parse_text(text(samples(taken, groups, Selection())))


def test_nothing_before_the_first_window() -> None:
    collector = SnapshotCollector(lambda: None)
    assert generate_latest(collector) == b""
    registry = CollectorRegistry()
    registry.register(collector)
    with pytest.raises(ValueError, match="honest_gpu"):
        registry.register(SnapshotCollector(lambda: None))


def test_only_selected_families() -> None:
    taken = snapshot()
    collector = SnapshotCollector(lambda: taken, selection=Selection(Profile.MINIMAL, exclude=("honest_gpu_busy_*",)))
    names = {metric.name for metric in collector.collect()}
    assert "honest_gpu_sm_active_seconds" in names
    assert "honest_gpu_busy_ratio" not in names
    assert names <= {metric.name for metric in collector.describe()}
