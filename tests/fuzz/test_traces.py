"""PyTorch traces: any JSON, any bytes, any set of files."""

from __future__ import annotations

import gzip
import io
import json
import math
import tarfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.sources.replay.json_stream import JsonStream, JsonStreamError
from exporter.sources.replay.kineto import read_kineto
from exporter.sources.replay.opening import open_replay
from exporter.sources.replay.traces import TraceError
from tests.fuzz.budget import fuzzed
from tests.fuzz.mutation import mutated_bytes, mutated_json, mutated_text
from tests.fuzz.range_check import assert_fit
from tests.fuzz.refusal import may_refuse


def event(kind: str, name: str, start: float, length: float, **args: Any) -> dict[str, Any]:
    return {"ph": "X", "cat": kind, "name": name, "ts": start, "dur": length, "args": args}


LAUNCH = {
    "grid": [8, 1, 1],
    "block": [128, 1, 1],
    "blocks per SM": 0.5,
    "est. achieved occupancy %": 12,
    "registers per thread": 32,
    "shared memory": 1024,
}
TRACE: dict[str, Any] = {
    "schemaVersion": 1,
    "deviceProperties": [
        {
            "id": 0,
            "name": "NVIDIA A100",
            "numSms": 108,
            "maxThreadsPerMultiprocessor": 2048,
            "regsPerMultiprocessor": 65536,
            "sharedMemPerMultiprocessor": 167936,
            "computeMajor": 8,
        }
    ],
    "distributedInfo": {"rank": 0, "world_size": 2},
    "baseTimeNanoseconds": 1700000000000000000,
    "traceEvents": [
        event("cpu_op", "aten::mm", 100.0, 900.0),
        event("kernel", "gemm", 200.0, 50.0, device=0, **LAUNCH),
        event(
            "kernel", "ncclDevKernel", 220.0, 100.0, device=0, **{**LAUNCH, "grid": [300, 2, 1], "blocks per SM": 5.6}
        ),
        event("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 300.0, 10.0, device=0, bytes=4096),
        event("user_annotation", "enumerate(DataLoader)#_Iter.__next__", 500.0, 300.0),
    ],
}


def play(path: Path) -> None:
    """A source that is played over three windows, or a TraceError."""
    with may_refuse(TraceError) as told:
        source = open_replay(path, loop=True)
        for now in (1000.0, 1000.5, 1001.0, 1002.0):
            assert_fit(source.read(now))
        source.close()
    assert all(path.name in text for text in told)


@fuzzed(200)
@given(mutated_json(TRACE))
def test_any_json(tmp_path: Path, document: Any) -> None:
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    play(path)


LONG_NUMBERS = (
    "1" * 5000,
    "-" + "9" * 400,
    "1e99999",
    "0." + "1" * 5000,
    "[" * 2000,
    '{"a":' * 2000,
    '"\\ud800"',
    "NaN",
)


@fuzzed(200)
@given(mutated_text(json.dumps(TRACE), ('"', "\\u", "[", "{", "]", "}", ",", ":", "null", *LONG_NUMBERS)))
def test_any_text(tmp_path: Path, text: str) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(text.encode(errors="surrogatepass"))
    play(path)


@fuzzed()
@given(mutated_bytes(gzip.compress(json.dumps(TRACE).encode(), mtime=0)) | st.binary(max_size=100))
def test_any_bytes(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "trace.json.gz"
    path.write_bytes(data)
    play(path)


def archive(names: list[str], contents: list[bytes]) -> bytes:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as tar:
        for name, content in zip(names, contents, strict=False):
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return raw.getvalue()


RANKS = archive(["rank0.json", "../../rank²1.json", "/etc/x.json"], [json.dumps(TRACE).encode()] * 2)


@fuzzed()
@given(mutated_bytes(RANKS))
def test_any_archive(tmp_path: Path, data: bytes) -> None:
    """Members are read where they lie, never unpacked: a name with .. or a link leads nowhere."""
    path = tmp_path / "ranks.tar"
    path.write_bytes(data)
    play(path)
    assert [each.name for each in tmp_path.iterdir()] == ["ranks.tar"]


@fuzzed(60)
@given(mutated_json({"a": TRACE, "b": TRACE}, most=6))
def test_any_two_ranks(tmp_path: Path, documents: Any) -> None:
    folder = tmp_path / "ranks"
    folder.mkdir(exist_ok=True)
    documents = documents if isinstance(documents, dict) else {}
    for number, name in enumerate(("rank1.json", "rank²0.json")):
        document = list(documents.values())[number] if number < len(documents) else {}
        (folder / name).write_text(json.dumps(document), encoding="utf-8")
    play(folder)


@fuzzed()
@given(st.text(max_size=200) | mutated_text(json.dumps(TRACE)))
def test_the_stream_alone(text: str) -> None:
    with may_refuse(JsonStreamError):
        list(JsonStream(io.StringIO(text)).members("traceEvents"))


@pytest.mark.parametrize(
    "text",
    ["[" * 100_000, '{"a":' + "[" * 100_000, '{"a":1' + "1" * 10_000 + "}", '{"a":"""'],
    ids=["deep", "deep inside", "number", "text"],
)
def test_deep_and_long(text: str) -> None:
    with pytest.raises(JsonStreamError):
        list(JsonStream(io.StringIO(text)).members("traceEvents"))


NO_KERNEL: Any = {"traceEvents": []}
NO_TIME: Any = {"traceEvents": [event("kernel", "a", 1.0, 0.0, device=0)]}


@pytest.mark.parametrize(
    "name", ["registers per thread", "shared memory", "blocks per SM", "est. achieved occupancy %"]
)
@pytest.mark.parametrize("value", [-1, -1024, 0, 10**400, 1e308, True, "x", None])
def test_odd_launches(tmp_path: Path, name: str, value: Any) -> None:
    path = tmp_path / "trace.json"
    kernel = event("kernel", "a", 1.0, 1.0, device=0, **{**LAUNCH, "est. achieved occupancy %": 0, name: value})
    path.write_text(json.dumps({**TRACE, "traceEvents": [kernel]}))
    play(path)


@pytest.mark.parametrize("time", [10**400, 1e308, -1e308, "1e999", "nan", None])
def test_odd_times(tmp_path: Path, time: Any) -> None:
    path = tmp_path / "trace.json"
    good = event("kernel", "b", 1.0, 1.0, device=0)
    for odd in (event("kernel", "a", time, 1.0, device=0), event("kernel", "a", 1.0, time, device=0)):
        path.write_text(json.dumps({**TRACE, "traceEvents": [odd, good]}))
        (track,) = read_kineto(path)
        assert math.isfinite(track.timeline.duration)
        assert track.notes[-1] == "1 GPU events without a valid time or device were ignored"


@pytest.mark.parametrize("document", [NO_KERNEL, NO_TIME, {}, []])
def test_nothing_to_play(tmp_path: Path, document: Any) -> None:
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(document))
    with pytest.raises(TraceError, match=r"trace\.json"):
        open_replay(path, loop=True)
