"""The document: its shape, and that absent is null with the reason, never 0."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.nodes import instances, snapshots
from exporter.attribution.background import SourceHealth
from exporter.attribution.view import AttributionView
from exporter.clock import VirtualClock
from exporter.core.pipeline import Pipeline
from exporter.core.snapshot import Snapshot
from exporter.fields import CLAIM, FIELDS, PROFILING, Kind
from exporter.model import Absence, Batch, Device, Entity, Problem, Reading
from exporter.page.api import document
from exporter.page.history import Freshness, History
from tests.page import schema
from tests.page.nodes import Node

FRESH = Freshness(0.25, False)
BOARD = Entity("GPU-1")
EVERY = tuple(name for name, field in FIELDS.items() if field.kind in (Kind.RATIO, Kind.RATE, Kind.GAUGE))


def made(snapshot: Snapshot, history: History | None = None, freshness: Freshness = FRESH) -> dict[str, Any]:
    """What a client gets."""
    text = json.dumps(document(snapshot, freshness, history.since(0.0) if history else None), allow_nan=False)
    parsed: dict[str, Any] = json.loads(text)
    schema.check(parsed)
    return parsed


def snapshot_of(readings: Sequence[Reading], fields: frozenset[str], windows: int = 1) -> Snapshot:
    """One board whose source expects ``fields`` and brings ``readings`` in each window."""
    clock = VirtualClock(timestamp=1000.0)
    pipeline = Pipeline(clock, 1.0)
    for _ in range(windows):
        start = clock.monotonic()
        clock.advance(1.0)
        end = clock.monotonic()
        timed = [r._replace(end=end, start=None if r.start is None else start) for r in readings]
        pipeline.absorb(Batch("test", end, [Device(BOARD, "0", fields)], timed))
    return pipeline.publish()


def value(field: str, number: float) -> Reading:
    interval = FIELDS[field].kind in (Kind.RATIO, Kind.RATE)
    return Reading(BOARD, field, 1.0, number, 0.0 if interval else None)


def absent(field: str, why: Absence) -> Reading:
    return Reading(BOARD, field, 1.0, None, 0.0, why)


def test_a_full_node_has_the_shape_and_its_numbers() -> None:
    node = Node(["tiny-kernels"], 2, 90)
    snapshot = node.snapshot
    parsed = made(snapshot, node.published.history)
    first, view = parsed["gpus"][0], snapshot.entities[0]
    assert first["values"]["busy"] == view.means["busy"]
    assert view.honest is not None
    assert first["parts"] == view.honest.parts
    assert first["utilization"] == first["parts"]["working"]
    assert first["divergence"] == pytest.approx(first["values"]["busy"] - first["values"]["sm"], abs=0.01)
    assert first["state"] == "launch_bound"
    assert first["state_reason"]
    assert first["holders"][0]["pod"] == "llama-finetune-7f9c-worker-0"
    assert [holder["job_id"] for holder in parsed["gpus"][1]["holders"]] == ["48213", "48217"]
    assert first["absent"] == {}
    assert parsed["history"]["timestamps"][-1] == parsed["timestamp"]
    assert set(parsed["history"]["gpus"]) == {gpu["id"] for gpu in parsed["gpus"]}
    assert parsed["warnings"] == ["SIMULATED: the numbers of this node are made up, on request."]


def test_a_board_in_instances_points_at_them() -> None:
    parsed = made(snapshots(instances(1, 2), 3)[-1])
    board, instance = parsed["gpus"][:2]
    assert board["mig_enabled"]
    assert board["values"]["busy"] is None
    assert {board["absent"][name] for name in ("sm", "parts", "utilization", "state", "holders")} == {"per_instance"}
    assert board["values"]["power"] is not None
    assert instance["claim"] == "graphics_engine"
    assert instance["values"]["busy"] is None
    assert instance["absent"]["busy"] == instance["absent"]["divergence"] == "not_reported"
    assert sum(instance["parts"].values()) == pytest.approx(1.0)
    assert instance["id"].endswith("/gi1")


def test_a_source_that_is_down_leaves_nulls_and_says_so() -> None:
    parsed = made(Node([], 1, 30, fails_after=20).snapshot)
    gpu = parsed["gpus"][0]
    assert set(gpu["values"].values()) == {None}
    assert gpu["absent"]["sm"] == gpu["absent"]["utilization"] == "no_data"
    assert "Source simulated is down: the hostengine does not answer." in parsed["warnings"]
    assert parsed["problems"][0]["remedy"] == "systemctl restart nvidia-dcgm"
    assert parsed["sources"][0]["up"] is False


def test_a_gpu_that_is_gone_has_no_values_left() -> None:
    clock = VirtualClock(timestamp=1000.0)
    pipeline = Pipeline(clock, 1.0)
    devices = [Device(Entity(name), name, frozenset({"busy"})) for name in ("GPU-1", "GPU-2")]
    for listed in (devices, devices[:1]):
        clock.advance(1.0)
        end = clock.monotonic()
        readings = [Reading(device.entity, "busy", end, 0.5, end - 1.0) for device in listed]
        pipeline.absorb(Batch("test", end, listed, readings))
    parsed = made(pipeline.publish())
    here, gone = parsed["gpus"]
    assert here["values"]["busy"] == 0.5
    assert not gone["present"]
    assert set(gone["absent"].values()) == {"not_present"}
    assert "1 of 2 GPUs are missing." in parsed["warnings"]


FORBIDDEN = [value("busy", 0.9), absent("sm", Absence.NOT_PERMITTED), absent("dram", Absence.NOT_PERMITTED)]


@pytest.mark.parametrize(
    ("readings", "name", "why"),
    [
        (FORBIDDEN, "sm", "not_permitted"),
        (FORBIDDEN, "utilization", "not_permitted"),
        (FORBIDDEN, "divergence", "not_permitted"),
        # what will come back is said before what this GPU never had
        ([absent("sm", Absence.PAUSED), absent("dram", Absence.NOT_SUPPORTED)], "parts", "paused"),
        ([absent("sm", Absence.LOCKED), absent("dram", Absence.NOT_SUPPORTED)], "limiter", "locked"),
        ([value("sm", 1.294), value("dram", 0.1)], "sm", "out_of_range"),
        ([value("sm", math.nan), value("dram", 0.1)], "utilization", "not_a_number"),
        ([value("busy", 0.9)], "sm", "no_data"),
        ([value("busy", 0.9)], "tensor", "not_reported"),
        ([value("busy", 0.9)], "state", "no_data"),
        ([value("busy", 0.9)], "holders", "not_configured"),
    ],
)
def test_the_reason_of_an_absence(readings: list[Reading], name: str, why: str) -> None:
    gpu = made(snapshot_of(readings, frozenset({"busy", "sm", "dram"})))["gpus"][0]
    assert gpu["absent"][name] == why


def test_only_the_claim_leaves_the_rest_unexplained() -> None:
    gpu = made(snapshot_of([value("busy", 0.9)], frozenset({"busy"})))["gpus"][0]
    assert gpu["parts"] == pytest.approx({"unexplained": 0.9, "idle": 0.1})
    assert gpu["utilization"] is None
    assert gpu["absent"]["utilization"] == "not_reported"
    assert gpu["quality"]["form"] == "claim_only"


def test_an_attribution_that_is_down_makes_holders_unknown_not_nobody() -> None:
    snapshot = snapshot_of([value("busy", 0.9)], frozenset({"busy"}))
    for up, holders in ((True, []), (False, None)):
        view = AttributionView(sources=[SourceHealth("kubernetes", up, reason="" if up else "no socket")])
        parsed = made(replace(snapshot, attribution=view))
        assert parsed["gpus"][0]["holders"] == holders
        assert any("no socket" in text for text in parsed["warnings"]) is not up


def test_stale_numbers_are_called_so() -> None:
    snapshot = snapshot_of([value("busy", 0.9)], frozenset({"busy"}))
    parsed = made(snapshot, freshness=Freshness(60.0, True))
    assert parsed["stale"]
    assert parsed["age_seconds"] == 60.0
    assert parsed["warnings"][0].startswith("No new numbers")


def test_a_problem_names_its_gpu() -> None:
    snapshot = snapshot_of([value("busy", 0.9)], frozenset({"busy"}))
    problems = (Problem("no links", "old driver", "", BOARD), Problem("no profiling", "locked", "end Nsight"))
    assert made(replace(snapshot, problems=problems))["problems"] == [
        {"gpu": "GPU-1", "what": "no links", "why": "old driver", "remedy": None},
        {"gpu": None, "what": "no profiling", "why": "locked", "remedy": "end Nsight"},
    ]


def readings() -> st.SearchStrategy[list[Reading]]:
    """Any number of any fields: right, impossible, no number at all, or absent for any reason."""
    numbers = st.one_of(st.floats(0.0, 1.0), st.floats(allow_nan=True, allow_infinity=True))
    fields = st.sampled_from(EVERY)
    return st.lists(
        st.one_of(st.builds(value, fields, numbers), st.builds(absent, fields, st.sampled_from(Absence))),
        max_size=30,
        unique_by=lambda reading: reading.field,
    )


@settings(max_examples=200, deadline=None)
@given(readings(), st.frozensets(st.sampled_from(EVERY)), st.integers(1, 8))
def test_whatever_comes_in_the_document_is_strict_and_explains_itself(
    given_: list[Reading], fields: frozenset[str], windows: int
) -> None:
    history = History()
    snapshot = snapshot_of(given_, fields, windows)
    history.add(snapshot)
    gpu = made(snapshot, history)["gpus"][0]
    for name in (*CLAIM, *PROFILING):
        assert gpu["values"][name] is None or 0.0 <= gpu["values"][name] <= 1.0
    if gpu["parts"] is not None:
        assert sum(gpu["parts"].values()) == pytest.approx(1.0)


def test_docs_name_every_key() -> None:
    text = (Path(__file__).parents[2] / "docs" / "api.md").read_text()
    keys = {*schema.DOCUMENT, *schema.GPU, *schema.VALUES, *schema.COLUMNS, *schema.HOLDER, *schema.HISTORY}
    quality = schema.GPU["quality"]
    assert isinstance(quality, dict)
    assert not sorted(key for key in {*keys, *quality} if f"`{key}`" not in text)
