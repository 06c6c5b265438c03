"""Own recordings: what was recorded is what is played."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.fields import FIELDS, Kind
from exporter.model import Absence, Batch, Device, Entity, Problem, Reading
from exporter.sources.replay.opening import open_replay
from exporter.sources.replay.recording import Recorder, RecordingSource
from exporter.sources.replay.traces import TraceError

GPU, INSTANCE = Entity("GPU-1"), Entity("GPU-1", 3)
DEVICES = (
    Device(GPU, "0", frozenset({"power"}), "NVIDIA H100", mig_enabled=True, minor="0"),
    Device(INSTANCE, "0", frozenset({"sm"}), "NVIDIA H100", mig_profile="1g.10gb", mig_uuid="MIG-1"),
)


def batch(end: float, *readings: Reading) -> Batch:
    return Batch("nvml", end, DEVICES, readings, [Problem("x", "y", "z", GPU)], {("line", "unparseable"): 2})


def recorded(path: Path, *batches: Batch) -> Path:
    recorder = Recorder(path)
    for each in batches:
        recorder(each)
    recorder.close()
    return path


values = st.floats(-1e12, 1e12)
readings = st.builds(
    lambda entity, field, value, label: Reading(
        entity, field, 101.0, value, 100.0 if FIELDS[field].kind is Kind.RATIO else None, None, label
    ),
    st.sampled_from([GPU, INSTANCE]),
    st.sampled_from(sorted(FIELDS)),
    values,
    st.sampled_from(["", "79", "power_cap"]),
)


@given(st.lists(readings, max_size=20))
def test_readings_survive(tmp_path_factory: pytest.TempPathFactory, given_readings: list[Reading]) -> None:
    path = recorded(tmp_path_factory.mktemp("r") / "r.gz", batch(100.0), batch(101.0, *given_readings))
    source = RecordingSource("replay", path, loop=False)
    source.read(500.0)
    played = source.read(501.0)
    assert list(played.devices) == list(DEVICES)
    expected = [r._replace(end=501.0, start=None if r.start is None else 500.0) for r in given_readings]
    assert list(played.readings) == expected


def test_absences_problems_and_rejections_survive(tmp_path: Path) -> None:
    absent = Reading(INSTANCE, "sm", 101.0, None, 100.0, Absence.PAUSED)
    path = recorded(tmp_path / "r", batch(100.0), batch(101.0, absent))
    source = RecordingSource("replay", path, loop=False)
    source.read(0.0)
    played = source.read(1.0)
    assert played.readings[0].absence is Absence.PAUSED
    assert played.problems == (Problem("x", "y", "z", GPU),)
    assert played.rejected == {("line", "unparseable"): 2}
    assert played.final


def test_a_slow_reader_gets_all_batches_that_are_due(tmp_path: Path) -> None:
    batches = [batch(float(n), Reading(GPU, "power", float(n), 100.0 + n)) for n in range(6)]
    source = RecordingSource("replay", recorded(tmp_path / "r", *batches), loop=False)
    assert len(source.read(10.0).readings) == 1
    assert [r.value for r in source.read(13.5).readings] == [101.0, 102.0, 103.0]
    assert not source.read(13.6).final
    assert source.read(99.0).final


def test_a_loop_goes_on_without_a_gap_or_an_overlap(tmp_path: Path) -> None:
    batches = [batch(float(n), Reading(INSTANCE, "sm", float(n), 0.5, n - 1.0)) for n in range(4)]
    source = RecordingSource("replay", recorded(tmp_path / "r", *batches), loop=True)
    seen = [r for now in range(12) for r in source.read(float(now)).readings]
    assert [(r.start, r.end) for r in seen] == [(n - 1.0, float(n)) for n in range(12)]


def test_a_file_cut_short_plays_up_to_the_cut(tmp_path: Path) -> None:
    whole = recorded(
        tmp_path / "r", *(batch(float(n), Reading(GPU, "power", float(n), n + 0.123)) for n in range(5000))
    )
    packed = whole.read_bytes()
    whole.write_bytes(packed[: len(packed) // 2])
    source = open_replay(whole, loop=False)
    played = source.read(0.0), source.read(1e6)
    assert 100 < sum(len(b.readings) for b in played) < 5000
    assert played[1].final


def line(**more: object) -> str:
    return json.dumps({"source": "s", "end": 0, "devices": [], "readings": [], **more}) + "\n"


HEADER = '{"format":"honest-gpu-exporter recording","version":1,"exporter":"0.1.0"}\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEADER, "the recording is empty"),
        (HEADER.replace('"version":1', '"version":9'), "recording format 9, but this exporter reads 1"),
        (HEADER + "{nope}\n", "line 2 is damaged"),
        (HEADER + line(readings=[[0, "sm", 1, 0.5]]), "line 2 is damaged"),
        (HEADER + line(devices=[{"entity": ["GPU-1", None]}]), "line 2 is damaged"),
        (HEADER + line(end="soon"), "line 2 is damaged"),
    ],
)
def test_damage_is_told(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "r.jsonl.gz"
    path.write_bytes(gzip.compress(text.encode()))
    with pytest.raises(TraceError, match=message):
        open_replay(path, loop=False)


def test_other_files_are_told(tmp_path: Path) -> None:
    for name, content, message in (
        ("empty", b"", "empty"),
        ("cut.gz", gzip.compress(b"x" * 100_000)[:20], "damaged or truncated|ends in the middle|expected"),
        ("text", b"hello", "expected"),
    ):
        path = tmp_path / name
        path.write_bytes(content)
        with pytest.raises(TraceError, match=message):
            open_replay(path, loop=False)
    with pytest.raises(TraceError, match="cannot be read"):
        open_replay(tmp_path / "nothing", loop=False)


def test_two_sources_of_the_same_gpus_are_one_device_and_count_once(tmp_path: Path) -> None:
    """As recorded from a hostengine with the driver's processes beside it."""
    xid = Reading(GPU, "xid", 101.0, 1.0, None, None, "79")
    holders = Device(GPU, "0", frozenset({"processes"}))
    held = Reading(GPU, "processes", 101.0, 2.0)
    beside = Batch("b", 100.0, (holders,), ()), Batch("b", 101.0, (holders,), (held,))
    path = recorded(tmp_path / "r", batch(100.0), beside[0], batch(101.0, xid), beside[1])
    source = RecordingSource("replay", path, loop=False)
    source.read(0.0)
    played = source.read(1.0)
    assert [device.entity for device in played.devices] == [GPU, INSTANCE]
    assert played.devices[0].fields == {"power", "processes"}
    assert played.devices[0].mig_enabled
    assert len(played.readings) == 2
