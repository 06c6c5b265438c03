"""PyTorch traces: real ones with known figures, small ones for each rule, broken ones."""

from __future__ import annotations

import gzip
import io
import json
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

from exporter.sources.replay.kineto import read_kineto
from exporter.sources.replay.traces import TraceError, Track

TRACES = Path(__file__).parents[4] / "shared" / "data" / "traces"
PROPERTIES = [{"id": 0, "name": "NVIDIA A100", "numSms": 108, "maxThreadsPerMultiprocessor": 2048}]


def real(name: str) -> list[Track]:
    path = TRACES / name
    if not path.exists():
        pytest.skip(f"the captures are not here: {name}")
    return read_kineto(path)


def total(track: Track, channel: str) -> float:
    seconds = track.timeline.integral(channel, 0.0, track.timeline.duration)
    assert seconds is not None
    return seconds


def kernel(ts: float, dur: float, **args: Any) -> dict[str, Any]:
    given = {"device": 0, "blocks per SM": 1.0, "block": [256, 1, 1], "est. achieved occupancy %": 13, **args}
    return {"ph": "X", "cat": "kernel", "name": "gemm", "ts": ts, "dur": dur, "args": given}


def trace(*events: dict[str, Any], **more: Any) -> str:
    return json.dumps({"deviceProperties": PROPERTIES, "traceEvents": events, **more})


def written(folder: Path, text: str, name: str = "trace.json") -> Path:
    path = folder / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return path


def test_an_input_bound_resnet() -> None:
    (track,) = real("rtx2080ti_resnet_input_bound.json.gz")
    assert track.timeline.duration == pytest.approx(14.526, abs=0.001)
    assert total(track, "busy") == pytest.approx(4.103, abs=0.001)
    assert total(track, "input_wait") == pytest.approx(8.205, abs=0.001)
    assert track.timeline.channels.isdisjoint({"tensor", "dram", "fp32"})  # a trace cannot tell


def test_one_rank_of_eight() -> None:
    (track,) = real("a100_ddp_rank3of8.json.gz")
    assert track.device.entity.uuid == "TRACE-rank3-gpu3"
    assert total(track, "busy") == pytest.approx(0.3694, abs=0.0002)
    assert total(track, "sm") == pytest.approx(0.275, rel=0.01)
    assert total(track, "sm_occupancy") < total(track, "sm")


def test_a_dlrm_step_on_eight_gpus() -> None:
    tracks = real("v100x8_dlrm_8ranks.tar.gz")
    assert [track.device.index for track in tracks] == list("01234567")
    assert len({track.device.entity for track in tracks}) == 8
    for track in tracks:
        assert 0.6 < total(track, "collective") / total(track, "busy") < 0.95  # NCCL: 62-90 % of kernel time
    assert total(tracks[1], "busy") / tracks[1].timeline.duration == pytest.approx(0.62, abs=0.02)
    assert total(tracks[1], "sm") / tracks[1].timeline.duration == pytest.approx(0.07, abs=0.02)


def test_microseconds_strings_and_properties_behind_the_events(tmp_path: Path) -> None:
    events = [kernel(1000.5, 500_000), kernel(2_000_000.5, 250_000, **{"blocks per SM": 0.5})]
    text = json.dumps({"displayTimeUnit": "ms", "traceEvents": events, "deviceProperties": PROPERTIES})
    (track,) = read_kineto(written(tmp_path, text, "t.json.gz"))
    assert total(track, "busy") == pytest.approx(0.75)
    assert total(track, "sm") == pytest.approx(0.5 + 0.125)
    assert track.device.model == "NVIDIA A100"
    assert track.timeline.duration == pytest.approx(2.249, abs=0.001)


def test_streams_side_by_side_do_not_count_twice(tmp_path: Path) -> None:
    (track,) = read_kineto(written(tmp_path, trace(kernel(0, 1e6), kernel(0.5e6, 1e6))))
    assert total(track, "busy") == pytest.approx(1.5)
    assert total(track, "sm") == pytest.approx(1.5)


def test_tail_waves(tmp_path: Path) -> None:
    # 256 threads and 13 % of 2048: one block at once on an SM; 1.5 blocks an SM are a full wave and half of one
    (track,) = read_kineto(written(tmp_path, trace(kernel(0, 1e6, **{"blocks per SM": 1.5}))))
    assert total(track, "sm") == pytest.approx(0.75)


def test_old_traces_give_the_grid_only(tmp_path: Path) -> None:
    old = kernel(0, 1e6, grid=[27, 2, 1])
    del old["args"]["blocks per SM"]
    (track,) = read_kineto(written(tmp_path, trace(old)))
    assert total(track, "sm") == pytest.approx(0.5)


def test_a_launch_that_is_not_told_leaves_sm_absent(tmp_path: Path) -> None:
    unknown = {"ph": "X", "cat": "kernel", "name": "k", "ts": 0, "dur": 1e6, "args": {"device": 0}}
    (track,) = read_kineto(written(tmp_path, trace(unknown)))
    assert total(track, "busy") == pytest.approx(1.0)
    assert track.timeline.integral("sm", 0.0, 1.0) is None


def test_copies_and_collectives(tmp_path: Path) -> None:
    copy = {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD (Pinned -> Device)", "ts": 0, "dur": 1e6}
    copy["args"] = {"device": 0, "bytes": 1000}
    nccl = kernel(1e6, 1e6) | {"name": "ncclDevKernel_AllReduce_Sum"}
    (track,) = read_kineto(written(tmp_path, trace(copy, nccl)))
    assert total(track, "pcie_receive") == pytest.approx(1000)
    assert total(track, "busy") == pytest.approx(1.0)
    assert total(track, "collective") == pytest.approx(1.0)


def test_a_folder_of_ranks_shares_its_zero(tmp_path: Path) -> None:
    written(tmp_path, trace(kernel(0, 1e6), distributedInfo={"rank": 1}), "b.json")
    written(tmp_path, trace(kernel(0.5e6, 1e6), distributedInfo={"rank": 0}), "c.json.gz")
    first, second = read_kineto(tmp_path)
    assert (first.device.entity.uuid, second.device.entity.uuid) == ("TRACE-rank0-gpu0", "TRACE-rank1-gpu0")
    assert first.timeline.integral("busy", 0.0, 0.5) == 0.0
    assert second.timeline.integral("busy", 0.0, 0.5) == pytest.approx(0.5)


def test_ranks_with_clocks_of_their_own_begin_at_zero_each(tmp_path: Path) -> None:
    written(tmp_path, trace(kernel(0, 1e6)), "worker0.json")
    written(tmp_path, trace(kernel(9e9, 1e6)), "worker10.json")
    first, second = read_kineto(tmp_path)
    assert first.timeline.duration == second.timeline.duration == pytest.approx(1.0)
    assert "clocks" in second.notes[0]


def broken(folder: Path) -> dict[str, tuple[Path, str]]:
    packed = gzip.compress(trace(*[kernel(n, 1) for n in range(2000)]).encode())
    (folder / "cut.json.gz").write_bytes(packed[: len(packed) // 2])
    (folder / "empty.json").write_bytes(b"")
    (folder / "none").mkdir()
    with tarfile.open(folder / "bad.tar.gz", "w:gz") as archive:
        member = tarfile.TarInfo("r.json")
        member.size = 2
        archive.addfile(member, io.BytesIO(b"{}"))
    return {
        "truncated gzip": (folder / "cut.json.gz", "damaged or cut short"),
        "no byte": (folder / "empty.json", "ends in the middle"),
        "cut text": (written(folder, trace(kernel(0, 1))[:-20], "half.json"), "half.json: the text ends"),
        "other JSON": (written(folder, '{"a": 1}', "other.json"), "not a PyTorch profiler trace"),
        "no GPU": (written(folder, trace(), "cpu.json"), "no GPU kernel"),
        "not JSON": (written(folder, "hello", "text.json"), "expected '{'"),
        "no file": (folder / "nothing.json", "cannot be read: No such file"),
        "no trace in the folder": (folder / "none", "no .json"),
        "archive": (folder / "bad.tar.gz", "r.json: JSON, but not"),
    }


CASES = (
    "truncated gzip",
    "no byte",
    "cut text",
    "other JSON",
    "no GPU",
    "not JSON",
    "no file",
    "no trace in the folder",
    "archive",
)


@pytest.mark.parametrize("case", CASES)
def test_broken_files_are_told_apart(tmp_path: Path, case: str) -> None:
    path, message = broken(tmp_path)[case]
    with pytest.raises(TraceError, match=message) as raised:
        read_kineto(path)
    assert str(path).split("/")[-1] in str(raised.value)


def test_a_large_trace_in_bounded_memory(tmp_path: Path) -> None:
    """200 MB of text. The decoder alone would need about five times that for the whole document."""
    path = tmp_path / "large.json"
    filler = {
        "ph": "X",
        "cat": "cpu_op",
        "name": "aten::something_or_other" * 8,
        "ts": 1,
        "dur": 1,
        "args": {"x": "y" * 200},
    }
    piece = ",".join([json.dumps(kernel(5, 2)), *[json.dumps(filler)] * 200])
    with path.open("w") as file:
        file.write(f'{{"deviceProperties": {json.dumps(PROPERTIES)}, "traceEvents": [{piece}')
        while file.tell() < 200e6:
            file.write("," + piece)
        file.write("]}")
    code = (
        "import resource, sys; from pathlib import Path; from exporter.sources.replay.kineto import read_kineto;"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss; read_kineto(Path(sys.argv[1]));"
        "print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    assert float(done.stdout) < 64  # MiB
