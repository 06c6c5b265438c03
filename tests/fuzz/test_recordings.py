"""Own recordings: somebody else may have written one, or an editor been at it."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from exporter.sources.replay.opening import open_replay
from exporter.sources.replay.recording import FORMAT, FORMAT_VERSION
from exporter.sources.replay.traces import TraceError
from tests.fuzz.budget import fuzzed
from tests.fuzz.mutation import mutated_bytes, mutated_json, mutated_text
from tests.fuzz.range_check import assert_fit
from tests.fuzz.refusal import may_refuse

DEVICE = {
    "entity": ["GPU-1", None],
    "index": "0",
    "fields": ["sm", "power"],
    "model": "NVIDIA H100",
    "pci_bus_id": "",
    "driver_version": "580",
    "minor": "0",
    "mig_profile": "",
    "mig_uuid": "",
    "mig_enabled": False,
}
LINES: list[Any] = [
    {"format": FORMAT, "version": FORMAT_VERSION, "exporter": "0.1.0"},
    {
        "source": "nvml",
        "end": 0.0,
        "devices": [DEVICE, {**DEVICE, "entity": ["GPU-1", 3]}],
        "problems": [["a", "b", "c", ["GPU-1", None]]],
        "rejected": [["line", "unparseable", 2]],
        "readings": [[0, "power", 0.0, 300.0], [1, "sm", 0.0, None, None, "not_supported"]],
    },
    {"source": "nvml", "end": 1.0, "readings": [[0, "sm", 1.0, 0.5, 0.0], [0, "xid", 1.0, 1.0, None, None, "79"]]},
]


def play(path: Path) -> None:
    with may_refuse(TraceError) as told:
        source = open_replay(path, loop=False)
        for now in (1000.0, 1000.5, 1001.0, 1002.0, 5000.0):
            assert_fit(source.read(now))
    assert all(path.name in text for text in told)


def written(path: Path, text: bytes) -> Path:
    path.write_bytes(gzip.compress(text, compresslevel=1, mtime=0))
    return path


def packed(lines: Any) -> str:
    return "".join(
        json.dumps(line, separators=(",", ":")) + "\n" for line in (lines if isinstance(lines, list) else [lines])
    )


@fuzzed(600)
@given(mutated_json(LINES[1:]))
def test_any_lines(tmp_path: Path, lines: Any) -> None:
    play(written(tmp_path / "r.gz", (packed(LINES[:1]) + packed(lines)).encode()))


@fuzzed()
@given(mutated_json(LINES))
def test_any_header(tmp_path: Path, lines: Any) -> None:
    play(written(tmp_path / "r.gz", packed(lines).encode()))


@fuzzed(200)
@given(
    mutated_text(
        packed(LINES), ('"', "[" * 3000, "{", "1" * 5000, "NaN", "Infinity", "1e999", "\n", "null", "-1", "\\ud800")
    )
)
def test_any_text(tmp_path: Path, text: str) -> None:
    play(written(tmp_path / "r.gz", text.encode(errors="surrogatepass")))


@fuzzed()
@given(mutated_bytes(gzip.compress(packed(LINES).encode(), mtime=0)) | st.binary(max_size=60))
def test_any_bytes(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "r.gz"
    path.write_bytes(data)
    play(path)


def test_a_line_without_end_is_not_taken_into_memory(tmp_path: Path) -> None:
    path = tmp_path / "r.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(packed(LINES).encode() + b'{"source":"')
        for _ in range(100):
            file.write(b"a" * (1 << 20))
        file.write(b"\n")
    play(path)
