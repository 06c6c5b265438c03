"""The kernel's files about processes, pressure and RDMA ports. A process chooses its name; the rest is the kernel's."""

from __future__ import annotations

import math
import os
import re
from pathlib import Path

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.host import pressure, rdma
from exporter.host.processes import KERNEL_NAME, ProcessReader
from exporter.host.reader import HostReader
from tests.fuzz.budget import fuzzed
from tests.fuzz.mutation import mutated_bytes, mutated_text
from tests.fuzz.refusal import may_refuse

STAT = (
    b"42 (%s) R 1 42 42 0 -1 4194304 100 0 0 0 250 50 0 0 20 0 4 0 12345 1000000 500 18446744073709551615 "
    b"1 1 0 0 0 0 0 0 0 0 0 0 17 3 0 0 7 0 0 0 0 0 0 0 0 0 0\n"
)
IO = b"rchar: 10\nwchar: 20\nsyscr: 1\nsyscw: 2\nread_bytes: 4096\nwrite_bytes: 8192\ncancelled_write_bytes: 0\n"
PRESSURE = "some avg10=1.50 avg60=0.30 avg300=0.10 total=123456\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=99\n"
NUMBERS = ("=", "\n", " ", "-", ".", "nan", "inf", "1e999", "9" * 5000, "²", "٣", "1_0", "\0", "avg10", "some")


@pytest.fixture(autouse=True)
def procfs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(psutil, "PROCFS_PATH", str(tmp_path / "proc"))


@fuzzed()
@given(st.binary(min_size=1, max_size=60).filter(lambda name: b"\0" not in name))
def test_a_process_chooses_its_name_and_nothing_else(tmp_path: Path, name: bytes) -> None:
    for path, content in (("stat", b"btime 1\n"), ("42/stat", STAT % name), ("42/task/42/stat", STAT % name)):
        (tmp_path / "proc" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "proc" / path).write_bytes(content)
    (tmp_path / "proc" / "42" / "task" / "43").mkdir(exist_ok=True)
    (tmp_path / "proc" / "42" / "cmdline").write_bytes(name)
    found = ProcessReader().read([42]).holders[42]
    assert found.name == os.fsdecode(name)[:KERNEL_NAME]
    assert (found.cpu_seconds, found.main_thread_cpu_seconds, found.threads) == (3.0, 3.0, 2)
    assert (found.runnable_threads, found.blocked_threads) == (1, 0)


files = st.fixed_dictionaries(
    {
        "proc/stat": st.just(b"btime 1\n") | st.binary(max_size=20),
        "proc/42/stat": mutated_bytes(STAT % b"python") | st.binary(max_size=60),
        "proc/42/io": mutated_bytes(IO) | st.binary(max_size=30),
        "proc/42/task/42/stat": mutated_bytes(STAT % b"a) R (b"),
        "proc/42/task/43/stat": mutated_bytes(STAT % b"pt_data_worker"),
        "proc/43/stat": mutated_bytes(STAT.replace(b"R 1 ", b"R 42 ") % b"python"),
        "proc/43/cmdline": st.binary(max_size=20),
        "proc/sys/kernel/task_delayacct": st.binary(max_size=3),
        "proc/pressure/cpu": mutated_text(PRESSURE, NUMBERS).map(lambda text: text.encode(errors="surrogatepass")),
        "proc/pressure/io": st.binary(max_size=40),
        "sys/class/infiniband/mlx5_0/ports/1/state": mutated_bytes(b"4: ACTIVE\n"),
        "sys/class/infiniband/mlx5_0/ports/1/rate": mutated_bytes(b"400 Gb/sec (4X NDR)\n"),
        "sys/class/infiniband/mlx5_0/ports/1/counters/port_rcv_data": st.sampled_from(
            [b"1\n", b"-1\n", "²".encode(), "٣".encode(), b"9" * 5000, b"N/A (no PMA)\n", b"4294967295\n", b"\xff"]
        ),
        "sys/class/infiniband/mlx5_0/ports/1/counters/link_downed": st.binary(max_size=20),
    }
)


@fuzzed(50)
@given(files, files)
def test_two_passes_over_any_files(tmp_path: Path, first: dict[str, bytes], second: dict[str, bytes]) -> None:
    reader = HostReader(tmp_path / "sys")
    for written in (first, second):
        for name, content in written.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        reading = reader.read([42])
        for each in reading.pressure.values():
            for stall in (each.some, each.full):
                assert stall is None or all(math.isfinite(value) for value in (stall.seconds, *stall.average.values()))
        for port in reading.rdma:
            assert port.bytes_per_second is None or math.isfinite(port.bytes_per_second)
            assert port.receive_bytes is None or 0 <= port.receive_bytes < 1 << 70


@fuzzed()
@given(mutated_text(PRESSURE, NUMBERS) | st.text(max_size=100), st.sampled_from(pressure.RESOURCES))
def test_any_pressure(text: str, resource: str) -> None:
    with may_refuse(ValueError):
        found = pressure.parse(text, resource)
        for stall in (found.some, found.full):
            assert stall is None or math.isfinite(stall.seconds)
            assert stall is None or all(math.isfinite(share) and share >= 0 for share in stall.average.values())


@pytest.mark.parametrize("value", ["nan", "inf", "-1.00", "1e5", "9" * 5000, "", "1.2.3", "٣.00"])
@pytest.mark.parametrize("key", ["avg10", "total"])
def test_pressure_that_is_no_number(key: str, value: str) -> None:
    with pytest.raises(ValueError, match="not a number"):
        pressure.parse(re.sub(f"{key}=[0-9.]+", f"{key}={value}", PRESSURE), "io")


@fuzzed()
@given(st.text(max_size=30) | mutated_text("400 Gb/sec (4X NDR)", (".", "9", "²", "1e5")))
def test_any_rate(text: str) -> None:
    rate = rdma._rate(text)
    assert rate is None or math.isfinite(rate)
