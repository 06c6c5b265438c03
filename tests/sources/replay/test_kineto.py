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
from exporter.sources.replay.traces import GpuTrace, TraceError
from tests.data import capture

PROPERTIES = [{"id": 0, "name": "NVIDIA A100", "numSms": 108, "maxThreadsPerMultiprocessor": 2048}]


def real(name: str) -> list[GpuTrace]:
    return read_kineto(capture(f"traces/{name}"))


def total(track: GpuTrace, channel: str) -> float:
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
    assert total(track, "busy") == pytest.approx(0.369257, abs=1e-6)
    # min(1, blocks/SMs) alone gives 0.2754; half-empty tail waves, of large GEMMs for the most part, take some off
    assert total(track, "sm") == pytest.approx(0.2703, abs=0.0005)
    assert total(track, "sm_occupancy") == pytest.approx(0.1434, abs=0.0005)


def test_large_gemms_of_a_b200_have_one_block_an_sm() -> None:
    """A quarter of its kernels take over 48 KiB of shared memory: the profiler gives 0 % for them, which is no zero."""
    (track,) = real("b200_eager_rank0of8.json.gz")
    assert total(track, "sm") == pytest.approx(0.00781, abs=0.00005)
    assert total(track, "sm_occupancy") == pytest.approx(0.00261, abs=0.00005)


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


def large(**args: Any) -> dict[str, Any]:
    """Two blocks an SM, with shared memory for one at a time: the profiler's estimate is 0."""
    size = {"shared memory": 150_000, "registers per thread": 128, "blocks per SM": 1.5, "est. achieved occupancy %": 0}
    return kernel(0, 1e6, **{**size, **args})


def test_an_estimate_of_0_is_not_known_and_computed_from_what_a_block_takes(tmp_path: Path) -> None:
    known = [PROPERTIES[0] | {"regsPerMultiprocessor": 65536, "sharedMemPerMultiprocessor": 167936, "computeMajor": 8}]
    (track,) = read_kineto(written(tmp_path, trace(large(), deviceProperties=known)))
    assert total(track, "sm") == pytest.approx((1 + 0.5) / 2)
    assert total(track, "sm_occupancy") == pytest.approx((1 + 0.5) / 2 * 256 / 2048)


def test_an_estimate_of_0_without_the_limits_leaves_occupancy_absent(tmp_path: Path) -> None:
    (track,) = read_kineto(written(tmp_path, trace(large())))
    assert "sm_occupancy" not in track.timeline.channels
    assert total(track, "sm") == pytest.approx(1.0)  # one wave: the tail is not known
    (small,) = read_kineto(written(tmp_path, trace(large(**{"blocks per SM": 0.5}))))
    assert total(small, "sm_occupancy") == pytest.approx(0.5 * 256 / 2048)  # one block an SM at most


@pytest.mark.parametrize("size", [float("inf"), float("nan"), 0, "many", None])
def test_a_size_that_is_none_is_not_taken_for_one(tmp_path: Path, size: object) -> None:
    (track,) = read_kineto(written(tmp_path, trace(kernel(0, 1e6, **{"blocks per SM": size}))))
    assert track.timeline.integral("sm", 0.0, 1.0) is None


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


def test_ranks_count_from_their_own_base_time(tmp_path: Path) -> None:
    written(tmp_path, trace(kernel(0, 1e6), distributedInfo={"rank": 0}, baseTimeNanoseconds=10**18), "a.json")
    later = trace(kernel(0, 1e6), distributedInfo={"rank": 1}, baseTimeNanoseconds=10**18 + 500_000_000)
    written(tmp_path, later, "b.json")
    first, second = read_kineto(tmp_path)
    assert (first.timeline.duration, second.timeline.duration) == (1.0, 1.5)
    assert second.timeline.integral("busy", 0.0, 0.75) == pytest.approx(0.25)
    assert not second.notes


def test_one_process_with_several_gpus(tmp_path: Path) -> None:
    both = written(tmp_path, trace(kernel(0, 1e6, device=4), kernel(0.5e6, 1e6, device=1)))
    tracks = read_kineto(both)
    assert [track.device.entity.uuid for track in tracks] == ["TRACE-rank0-gpu1", "TRACE-rank0-gpu4"]
    assert [total(track, "busy") for track in tracks] == pytest.approx([1.0, 1.0])
    assert tracks[0].timeline.integral("busy", 0.0, 0.5) == 0.0


def test_no_two_gpus_have_one_identity(tmp_path: Path) -> None:
    written(tmp_path, trace(kernel(0, 1e6), distributedInfo={"rank": 1}), "a.json")
    written(tmp_path, trace(kernel(0, 1e6)), "b.json")
    written(tmp_path, trace(kernel(0, 1e6)), "c.json")
    uuids = [track.device.entity.uuid for track in read_kineto(tmp_path)]
    assert uuids == ["TRACE-rank1-gpu0", "TRACE-rank0-gpu0", "TRACE-rank2-gpu0"]
    written(tmp_path, trace(kernel(0, 1e6), distributedInfo={"rank": 1}), "d.json")
    with pytest.raises(TraceError, match=r"a\.json and .*d\.json are both rank 1: keep one"):
        read_kineto(tmp_path)


@pytest.mark.parametrize(
    "event",
    [
        kernel(float("nan"), 1),
        kernel(5, float("inf")),
        kernel(5e6, -4e6),
        kernel(0, 1, device="0"),
        kernel(0, 1) | {"args": [1]},
        kernel(0, 1) | {"ts": None},
    ],
)
def test_an_event_that_makes_no_sense_is_left_out_and_said(tmp_path: Path, event: dict[str, Any]) -> None:
    (track,) = read_kineto(written(tmp_path, trace(event, kernel(0, 1e6))))
    assert (total(track, "busy"), track.timeline.duration) == (1.0, 1.0)
    assert track.notes == ("1 GPU events without a valid time or device were ignored",)


def test_what_an_archive_has_besides_traces_does_not_matter(tmp_path: Path) -> None:
    body = trace(kernel(0, 1e6)).encode()
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as archive:
        for name, kind in (("link.json", tarfile.SYMTYPE), ("folder.json", tarfile.DIRTYPE)):
            other = tarfile.TarInfo(name)
            other.type, other.linkname = kind, "nowhere"
            archive.addfile(other)
        for name, content in (("readme.txt", b"x"), ("r/._rank0.json", b"\0\5"), ("r/rank0.json", body)):
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    (track,) = read_kineto(tmp_path / "a.tar.gz")
    assert total(track, "busy") == pytest.approx(1.0)


def broken(folder: Path) -> dict[str, tuple[Path, str]]:
    packed = gzip.compress(trace(*[kernel(n, 1) for n in range(2000)]).encode())
    (folder / "cut.json.gz").write_bytes(packed[: len(packed) // 2])
    (folder / "empty.json").write_bytes(b"")
    (folder / "none").mkdir()
    for name, inner, content in (("bad", "r.json", b"{}"), ("other", "x.txt", b""), ("long", "l.json", b"[" * 99_999)):
        with tarfile.open(folder / f"{name}.tar", "w") as archive:
            member = tarfile.TarInfo(inner)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    (folder / "cut.tar").write_bytes((folder / "long.tar").read_bytes()[:50_000])
    return {
        "truncated gzip": (folder / "cut.json.gz", "damaged or truncated"),
        "no byte": (folder / "empty.json", "the file is empty"),
        "cut text": (written(folder, trace(kernel(0, 1))[:-20], "half.json"), "half.json: the JSON is cut off"),
        "other JSON": (written(folder, '{"a": 1}', "other.json"), "not a PyTorch profiler trace"),
        "no GPU": (written(folder, trace(), "cpu.json"), "no GPU kernel"),
        "not JSON": (written(folder, "hello", "text.json"), "expected '{'"),
        "no file": (folder / "nothing.json", "cannot be read: No such file"),
        "no trace in the folder": (folder / "none", "no .json"),
        "archive": (folder / "bad.tar", "r.json: JSON, but not"),
        "archive of something else": (folder / "other.tar", "no .json or .json.gz file in this archive"),
        "truncated archive": (folder / "cut.tar", "l.json: damaged or truncated"),
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
    "archive of something else",
    "truncated archive",
)


@pytest.mark.parametrize("case", CASES)
def test_broken_files_are_told_apart(tmp_path: Path, case: str) -> None:
    path, message = broken(tmp_path)[case]
    with pytest.raises(TraceError, match=message) as raised:
        read_kineto(path)
    assert str(path).split("/")[-1] in str(raised.value)


def peak(path: Path) -> tuple[float, str]:
    """(MiB that reading took at most, what came of it), in a process of its own."""
    code = """
import resource, sys
from pathlib import Path
from exporter.sources.replay.kineto import read_kineto
from exporter.sources.replay.traces import TraceError
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    said = str(len(read_kineto(Path(sys.argv[1]))))
except TraceError as error:
    said = str(error)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024, said)
"""
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    mebibytes, _, said = done.stdout.strip().partition(" ")
    return float(mebibytes), said


def repeated(path: Path, head: str, piece: str, size: float) -> Path:
    """A file of about ``size`` characters: JSON with the piece again and again in its array."""
    with path.open("w") as file:
        file.write(head + piece)
        while file.tell() < size:
            file.write(("," + piece) * 200)
        file.write("]}")
    return path


def test_a_large_trace_in_bounded_memory(tmp_path: Path) -> None:
    """200 MB of text, most of it operators. The decoder would need about five times that for the whole document."""
    named = {"ph": "X", "cat": "cpu_op", "name": "aten::something_or_other" * 8, "ts": 1, "dur": 1}
    filler = json.dumps(named | {"args": {"x": "y" * 200}})
    head = f'{{"deviceProperties": {json.dumps(PROPERTIES)}, "traceEvents": ['
    piece = ",".join([json.dumps(kernel(5, 2)), *[filler] * 200])
    taken, said = peak(repeated(tmp_path / "large.json", head, piece, 200e6))
    assert said == "1"
    assert taken < 64


def test_kernels_and_copies_are_kept_small(tmp_path: Path) -> None:
    """20 MB of nothing but GPU work: what is kept grows with it, by much less than an object each."""
    copy = {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD (Pinned -> Device)", "ts": 9, "dur": 1}
    copy["args"] = {"device": 0, "bytes": 1000}
    head = f'{{"deviceProperties": {json.dumps(PROPERTIES)}, "traceEvents": ['
    piece = ",".join([json.dumps(kernel(5, 2)), json.dumps(copy)])
    taken, said = peak(repeated(tmp_path / "dense.json", head, piece, 20e6))
    assert said == "1"
    assert taken < 40


@pytest.mark.parametrize(
    ("head", "piece", "message"),
    [
        ('{"data": [', json.dumps({"x": "y" * 200}), "not a PyTorch profiler trace"),
        ('{"traceEvents": [nope, ', '{"x":1}', "not JSON near"),
        ('{"traceEvents": ["never closed, ', "{x:1}", "longer than"),
        ('{"data": {"x": [', '{"x":1}', "longer than"),
    ],
)
def test_a_large_file_that_is_no_trace_in_bounded_memory(tmp_path: Path, head: str, piece: str, message: str) -> None:
    taken, said = peak(repeated(tmp_path / "other.json", head, piece, 40e6))
    assert message in said
    assert taken < 100
