"""What works here, what does not, why, and what to do."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

import psutil

from exporter.cli.profilers import running
from exporter.config.options import DCGM_ADDRESS, DCGM_BINDINGS, PROCFS, SAMPLING_INTERVAL
from exporter.config.settings import Settings
from exporter.hardware.peaks import load as load_peaks
from exporter.model import Absence, Batch, Source, SourceError
from exporter.version import VERSION

CAP_SYS_ADMIN = 21  # linux/capability.h
_WINDOWS = 4  # reads of the hostengine: connect, watch, first sample, first interval


@dataclass
class Gpu:
    """One GPU, as far as it can be seen from here."""

    index: int
    uuid: str
    model: str
    mig: bool
    measured_by: str = ""  # nvml, dcgm; empty: the claim only
    peaks_known: bool = False
    problem: str = ""
    remedy: str = ""


@dataclass
class Check:
    """One thing that was looked at."""

    what: str
    found: str
    ok: bool | None  # None: neither good nor bad
    remedy: str = ""


@dataclass
class Report:
    """Everything."""

    version: str
    honest: bool = False  # the honest numbers can be had for every GPU
    checks: list[Check] = field(default_factory=list)
    gpus: list[Gpu] = field(default_factory=list)


def doctor(settings: Settings, *, as_json: bool) -> int:
    """Print the report; 0 when the honest numbers can be had for every GPU, else 1."""
    report = examine(settings)
    print(json.dumps(asdict(report), indent=2) if as_json else "\n".join(_lines(report)))
    return 0 if report.honest else 1


def examine(settings: Settings) -> Report:
    """Look at everything; nothing is changed."""
    psutil.PROCFS_PATH = str(settings[PROCFS])  # psutil's own global: where profilers are looked for
    report = Report(VERSION)
    _driver(report)
    _dcgm(report, settings)
    _rights(report, settings[PROCFS])
    peaks = load_peaks()
    for gpu in report.gpus:
        gpu.peaks_known = peaks.find(gpu.model) is not None
        if not gpu.measured_by and not gpu.problem:
            gpu.problem = "not measured: the driver has no GPM for this GPU, and no DCGM was found"
            gpu.remedy = "run a DCGM hostengine (systemctl start nvidia-dcgm) and set --dcgm.address localhost:5555"
    report.honest = bool(report.gpus) and all(gpu.measured_by for gpu in report.gpus)
    return report


def _driver(report: Report) -> None:
    from exporter.sources.nvml.probe import probe

    try:
        found = probe()
    except SourceError as error:
        report.checks.append(Check("NVIDIA driver", str(error), False, error.remedy))
        return
    report.checks.append(Check("NVIDIA driver", found.driver_version, True))
    for each in found.gpus:
        gpu = Gpu(each.index, each.uuid, each.model, each.mig, "nvml" if each.gpm else "", problem=each.problem)
        if each.problem:
            gpu.remedy = "dmesg | grep -i xid; nvidia-smi --gpu-reset"
        report.gpus.append(gpu)


def _dcgm(report: Report, settings: Settings) -> None:
    from exporter.sources.dcgm.bindings import find_bindings
    from exporter.sources.dcgm.library import require

    try:
        bindings = find_bindings(settings[DCGM_BINDINGS])
        report.checks.append(Check("DCGM bindings", f"{bindings.origin}, made for {bindings.version}", True))
        report.checks.append(Check("DCGM library", require(), True))
    except SourceError as error:
        needed = any(not gpu.measured_by for gpu in report.gpus) or bool(settings[DCGM_ADDRESS])
        report.checks.append(Check("DCGM", str(error), False if needed else None, error.remedy if needed else ""))
        return
    if not settings[DCGM_ADDRESS]:
        report.checks.append(Check("hostengine", "not checked: --dcgm.address is not set", None))
        return
    from exporter.sources.dcgm.source import DcgmSource

    source = DcgmSource(settings[DCGM_ADDRESS], bindings=bindings, interval=settings[SAMPLING_INTERVAL])
    try:
        batches = list(_watched(source, settings[SAMPLING_INTERVAL]))
        neighbours = source.neighbours
    except (SourceError, ValueError) as error:
        remedy = error.remedy if isinstance(error, SourceError) else ""
        report.checks.append(Check("hostengine", str(error), False, remedy))
        return
    finally:
        source.close()
    _measured(report, batches[-1])
    if neighbours is not None:
        report.checks += [Check("other clients", text, None) for text in neighbours.notes()]


def _watched(source: Source, interval: float) -> Iterator[Batch]:
    for _ in range(_WINDOWS):
        yield source.read(time.monotonic())
        time.sleep(interval)


def _measured(report: Report, batch: Batch) -> None:
    details = ", ".join(f"{key} {value}" for key, value in batch.details.items() if value)
    report.checks.append(Check("hostengine", details or "answers", True))
    report.checks += [Check(p.what, p.why, False, p.remedy) for p in batch.problems]
    sampled = {r.entity.uuid for r in batch.readings if r.field == "sm" and r.value is not None}
    reasons = {r.entity.uuid: r.absence for r in batch.readings if r.field == "sm" and r.absence is not None}
    known = {gpu.uuid: gpu for gpu in report.gpus}
    for device in batch.devices:
        uuid = device.entity.uuid
        gpu = known.get(uuid)
        if gpu is None:
            gpu = known[uuid] = Gpu(len(known), uuid, device.model, device.mig_enabled)
            report.gpus.append(gpu)
        if uuid in sampled:
            gpu.measured_by = gpu.measured_by or "dcgm"
        elif not gpu.measured_by and (why := reasons.get(uuid)) is not None:
            gpu.problem = f"DCGM does not report SM active: {why.value}"
            gpu.remedy = _REMEDIES.get(why, "run dcgmi profile --list and check the hostengine's log")


_REMEDIES = {
    Absence.LOCKED: "another profiler holds the counters (Nsight, ncu, a second hostengine): stop it",
    Absence.PAUSED: "honest-gpu-exporter profiling resume, or dcgmi profile --resume",
    Absence.NOT_PERMITTED: "run the hostengine as root, or load the driver with NVreg_RestrictProfilingToAdminUsers=0",
    Absence.NOT_SUPPORTED: "this GPU has no profiling counters that DCGM can read",
}


def _rights(report: Report, procfs: Path) -> None:
    restricted = _parameter("RmProfilingAdminOnly")
    if restricted is not None:
        text = "profiling is for administrators only" if restricted == "1" else "profiling is open to all users"
        report.checks.append(Check("driver parameter", text, None))
    report.checks.append(Check("CAP_SYS_ADMIN", "yes" if _capable() else "no", None))
    profilers = running()
    if profilers:
        text = f"running: {', '.join(profilers)}; before Hopper only one at a time can use the counters"
        report.checks.append(Check("profilers", text, None))
    host_view = _first_line(procfs / "2" / "comm") == "kthreadd"
    report.checks.append(
        Check("host's processes", "visible" if host_view else "not visible: processes cannot be attributed", None)
    )


def _parameter(name: str) -> str | None:
    try:
        lines = Path("/proc/driver/nvidia/params").read_text().splitlines()
    except OSError:
        return None
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(f"{name}:")), None)


def _capable() -> bool:
    try:
        lines = Path(f"/proc/{os.getpid()}/status").read_text().splitlines()
    except OSError:
        return False
    effective = next((line.split()[1] for line in lines if line.startswith("CapEff:")), "0")
    return bool(int(effective, 16) >> CAP_SYS_ADMIN & 1)


def _first_line(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def _lines(report: Report) -> Iterator[str]:
    marks = {True: "ok", False: "FAIL", None: "-"}
    yield f"honest-gpu-exporter {report.version}"
    for check in report.checks:
        yield f"  {marks[check.ok]:<5}{check.what:<19} {check.found}"
        if check.remedy and check.ok is False:
            yield f"      {'':<21}fix: {check.remedy}"
    for gpu in report.gpus:
        measured = (
            f"measured by {gpu.measured_by}" if gpu.measured_by else "NOT MEASURED: only the driver's claim is known"
        )
        extras = (", MIG" if gpu.mig else "") + ("" if gpu.peaks_known else ", peak rates unknown")
        yield f"  GPU {gpu.index:<3} {gpu.model or gpu.uuid}: {measured}{extras}"
        if gpu.problem:
            yield f"          {gpu.problem}"
            yield f"          fix: {gpu.remedy}"
    yield _conclusion(report)


def _conclusion(report: Report) -> str:
    if not report.gpus:
        return "No GPU was found."
    return "Every GPU can be measured." if report.honest else "Not every GPU can be measured."
