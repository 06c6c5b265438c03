"""A /proc tree written by hand."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path

TICK = os.sysconf("SC_CLK_TCK")
BOOTED = 1_700_000_000  # Unix time


@dataclass
class FakeProcess:
    """One process; ``threads``: further threads by id, with their state."""

    pid: int
    parent: int = 1
    name: str = "python"
    state: str = "S"
    cpu_ticks: int = 0
    started_ticks: int = 1000
    block_ticks: int = 0
    io: tuple[int, int, int] | None = (0, 0, 0)  # rchar, read_bytes, write_bytes; None: no such file
    command: str = "python train.py"
    threads: dict[int, str] = field(default_factory=dict)
    main_ticks: int = 0


def write(root: Path, *processes: FakeProcess, delays: bool | None = True) -> None:
    """Makes ``root`` hold these processes and no other."""
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    (root / "stat").write_text(f"btime {BOOTED}\n")
    if delays is not None:
        (root / "sys" / "kernel").mkdir(parents=True)
        (root / "sys" / "kernel" / "task_delayacct").write_text(f"{int(delays)}\n")
    for process in processes:
        folder = root / str(process.pid)
        folder.mkdir()
        count = 1 + len(process.threads)
        (folder / "stat").write_text(_stat(process, process.pid, process.state, process.cpu_ticks, count))
        (folder / "cmdline").write_text(process.command.replace(" ", "\0") + "\0")
        if process.io is not None:
            rchar, read, written = process.io
            (folder / "io").write_text(
                f"rchar: {rchar}\nwchar: 7\nsyscr: 1\nsyscw: 1\nread_bytes: {read}\n"
                f"write_bytes: {written}\ncancelled_write_bytes: 0\n"
            )
        for thread, state in {process.pid: process.state, **process.threads}.items():
            (folder / "task" / str(thread)).mkdir(parents=True)
            ticks = process.main_ticks if thread == process.pid else 0
            (folder / "task" / str(thread) / "stat").write_text(_stat(process, thread, state, ticks, count))


def _stat(process: FakeProcess, number: int, state: str, ticks: int, threads: int) -> str:
    """The 52 fields of man 5 proc_pid_stat."""
    fields = ["0"] * 50
    fields[0], fields[1] = state, str(process.parent)
    fields[11], fields[12] = str(ticks - ticks // 4), str(ticks // 4)
    fields[13] = "999999"  # children waited for: not part of the process itself
    fields[17], fields[19], fields[39] = str(threads), str(process.started_ticks), str(process.block_ticks)
    return f"{number} ({process.name}) {' '.join(fields)}\n"
