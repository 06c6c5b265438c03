"""Reads the whole host in one pass."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import psutil

from exporter.host import pressure, rdma
from exporter.host.processes import PassLimits, ProcessReader
from exporter.host.reading import HostReading, ProcessesReading
from exporter.model import Problem


class HostReader:
    """Reads pressure, RDMA ports and the processes that hold GPUs; call it once a sampling window, from one thread.

    /proc is where psutil.PROCFS_PATH says when the reader is made.
    """

    def __init__(self, sys: Path = Path("/sys"), limits: PassLimits | None = None) -> None:
        self._pressure = Path(psutil.PROCFS_PATH) / "pressure"
        self._rdma = sys / "class" / "infiniband"
        self._processes = ProcessReader(limits)

    def read(self, holders: Iterable[int]) -> HostReading:
        """``holders``: pids of the processes that hold a GPU. Raises nothing; what is missing is in ``problems``."""
        stalls, problems = pressure.read(self._pressure)
        try:
            processes = self._processes.read(holders)
        except (OSError, ValueError, IndexError, RuntimeError) as error:  # all but the first: not the kernel's form
            problem = Problem(
                "nothing about the processes that hold GPUs", str(error), "mount /proc into the container"
            )
            processes = ProcessesReading({}, problems=[problem])
        return HostReading(stalls, rdma.read(self._rdma), processes, (*problems, *processes.problems))
