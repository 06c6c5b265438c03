"""Where the memory of the daemon goes: 8 GPUs, one scrape a second for 30 s, on the players and simulated.

A part's figure is what importing it adds to a fresh interpreter, after the parts above it. Bytecode lies ready, as in
the image and the package. A real libdcgm is not in it: the player answers inside the process.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import psutil

from tests.abi.dcgm.build import player_library as dcgm_library
from tests.abi.dcgm.playing import play as play_dcgm
from tests.abi.nvml.build import player_library as nvml_library
from tests.abi.nvml.playing import play as play_nvml
from tests.abi.scenarios.nodes import h100_node
from tests.abi.scenarios.workloads import GEMM, running
from tests.end_to_end.processes import free_port
from tests.sources.dcgm.nodes import gpu, node

SECONDS = 30
EXPORTER = "exporter.cli.main exporter.cli.serve exporter.sources.dcgm.source exporter.sources.nvml.source"
BINDINGS = " ".join(f"model_analyzer.monitor.dcgm.dcgm_{name}" for name in ("structs", "fields", "agent"))
IMPORTS = f"""
import importlib, sys
def resident():
    return next(int(line.split()[1]) for line in open("/proc/self/smaps_rollup") if line.startswith("Rss"))
def step(name, modules, before):
    for module in modules:
        importlib.import_module(module)
    print(f"| {{name}} | {{(resident() - before) / 1024:.1f}} |")
    return resident()
now = step("the interpreter", (), 0)
now = step("modules of Python's own library", sys.argv[1].split(), now)
now = step("PyYAML", ("yaml",), now)
now = step("the exporter's code", "{EXPORTER}".split(), now)
now = step("NVIDIA's bindings of DCGM", "{BINDINGS}".split(), now)
now = step("nvidia-ml-py, for the processes on the GPUs", ("pynvml",), now)
now = step("not loaded by default: ssl, http.client, email, hashlib", ("ssl", "http.client", "hashlib"), now)
"""


def _python(environment: Mapping[str, str], script: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments], env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout


def _parts(environment: Mapping[str, str]) -> None:
    names = f"import sys, {EXPORTER.replace(' ', ', ')}; print(*(sys.stdlib_module_names & set(sys.modules)))"
    library = _python(environment, names)
    _python(environment, IMPORTS, library)  # once for the bytecode
    print("| part | RSS MiB |\n|---|---|")
    print(_python(environment, IMPORTS, library))


def _daemon(name: str, environment: Mapping[str, str], arguments: Sequence[str]) -> None:
    _run(environment, arguments, 1)  # once for the bytecode
    rss, pss, private = _run(environment, arguments, SECONDS)
    print(f"| {name} | {rss:.1f} | {pss:.1f} | {private:.1f} |", flush=True)


def _run(environment: Mapping[str, str], arguments: Sequence[str], seconds: int) -> tuple[float, float, float]:
    """RSS, PSS and private memory in MiB, after a scrape a second."""
    url = f"127.0.0.1:{free_port()}"
    command = [sys.executable, "-m", "exporter", *arguments, f"--web.listen-address={url}"]
    process = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
    try:
        request = urllib.request.Request(f"http://{url}/metrics", headers={"Accept-Encoding": "gzip"})
        time.sleep(3)
        for _ in range(seconds):
            urllib.request.urlopen(request, timeout=5).read()
            time.sleep(1)
        used = psutil.Process(process.pid).memory_full_info()
        return used.rss / 2**20, used.pss / 2**20, used.uss / 2**20
    finally:
        process.terminate()
        process.wait(5)


def main() -> None:
    nvml = h100_node()
    nvml = replace(nvml, gpus=tuple(running(each, GEMM) for each in nvml.gpus), wall_offset=None)
    dcgm = replace(node(*(gpu(number) for number in range(8))), wall_offset=None)
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        cached = {"PYTHONPYCACHEPREFIX": str(folder / "bytecode"), "PYTHONDONTWRITEBYTECODE": ""}
        _parts(os.environ | cached)
        dcgm_variables = play_dcgm(dcgm, dcgm_library(), folder / "dcgm", real_time=True).environment() | cached
        nvml_variables = play_nvml(nvml, nvml_library(), folder / "nvml", real_time=True).environment() | cached
        print("| 8 GPUs | RSS MiB | PSS MiB | private MiB |\n|---|---|---|---|")
        _daemon("DCGM", dcgm_variables, ("--source=dcgm", "--dcgm.address=localhost:5555"))
        _daemon("NVML", nvml_variables, ("--source=nvml",))
        _daemon("simulated", os.environ | cached, ("--source=simulated", "--source.gpus=8"))


if __name__ == "__main__":
    main()
