"""Folders in which a scheduler writes which job has which GPU: three forms, one claim each.

A file that is left behind by a job that has ended cannot be told from one of a job that runs: the folder is believed.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from exporter.attribution.holdings import AttributionError, Claim, Workload
from exporter.attribution.small_files import NotSmall, read_small
from exporter.model import Device, Entity

MOST_FILES = 4096
MOST_JOBS = 256  # jobs named by one file, GPUs named by one job
MOST_TEXT = 128  # characters of an id or a name

_INDEX_FILE = re.compile(r"(0|[1-9][0-9]{0,3})(?:\.(0|[1-9][0-9]{0,3}))?")
_GPUSTAT_LINE = re.compile(r"([0-9]{1,20})\s+([0-9]{1,10})")
_UID = re.compile(r"[0-9]{1,10}")
_OLD_MIG = re.compile(r"MIG-(GPU-[0-9a-f-]+)/([0-9]{1,4})/([0-9]{1,4})")


@dataclass(frozen=True, slots=True)
class Oddity:
    """One thing that could not be made use of: its kind, for a count, and a sentence."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Found:
    """What a folder tells. ``jobs``: everything known of a job, by each of its names."""

    claims: Sequence[Claim] = ()
    oddities: Sequence[Oddity] = ()
    jobs: Sequence[tuple[str, Workload]] = ()


MappingReader = Callable[[Path, Sequence[Device]], Found]


def read_index_files(folder: Path, devices: Sequence[Device]) -> Found:
    """dcgm-exporter's folder (--hpc-job-mapping-dir): files ``<gpu>`` and ``<gpu>.<gpu instance>``, one job a line.

    The number is DCGM's, which is NVML's: it is joined to Device.index, and is right only if whoever wrote it used
    that numbering too and not that of Slurm or of /dev/nvidiaN. Other files are not of this form and are passed over,
    as dcgm-exporter does. Raises AttributionError when the folder cannot be read.
    """
    by_index = {(device.index, device.entity.gpu_instance): device.entity for device in devices}
    claims: list[Claim] = []
    oddities: list[Oddity] = []
    for path in _files(folder):
        name = _INDEX_FILE.fullmatch(path.name)
        if not name:
            continue
        entity = by_index.get((name[1], None if name[2] is None else int(name[2])))
        lines = _lines(path, oddities)
        if entity is None:
            oddities += _unknown_device(path) if lines else ()
            continue
        for line in lines:
            if _is_word(line):
                claims.append(Claim(entity, Workload(job_id=line)))
            else:
                oddities.append(Oddity("bad_line", f"{path}: not a job id: {line[:40]!r}"))
    return Found(claims, oddities)


class GpustatReader:
    """jobstats' folder (/run/gpustat): files named by the UUID of a GPU or MIG device, ``JOB UID`` inside.

    Those named by a number are the same facts by an order that is not ours, and are passed over.
    """

    def __init__(self, user: Callable[[int], str]) -> None:
        """``user``: the name of a user by number."""
        self._user = user

    def __call__(self, folder: Path, devices: Sequence[Device]) -> Found:
        """Raises AttributionError when the folder cannot be read."""
        named = _by_uuid(devices)
        claims: list[Claim] = []
        oddities: list[Oddity] = []
        for path in _files(folder):
            if not path.name.startswith(("GPU-", "MIG-")):
                continue
            lines, entity = _lines(path, oddities), named.get(path.name)
            if entity is None:
                oddities += _unknown_device(path) if lines else ()
                continue
            for line in lines:
                said = _GPUSTAT_LINE.fullmatch(line)
                if said:
                    uid = int(said[2])
                    claims.append(Claim(entity, Workload(job_id=said[1], user=self._user(uid)), uid=uid))
                else:
                    oddities.append(Oddity("bad_line", f"{path}: not `JOB UID`: {line[:40]!r}"))
        return Found(claims, oddities)


def read_job_files(folder: Path, devices: Sequence[Device]) -> Found:
    """The folder of our own prolog: one file a job, lines of ``key=value`` (packaging/slurm/README.md).

    ``job_id``, ``sluid``, ``user``, ``uid``, ``account``, ``sharing=mps`` and, once for each GPU, ``gpu=UUID`` of a GPU
    or MIG device. Other keys are passed over. Raises AttributionError when the folder cannot be read.
    """
    named = _by_uuid(devices)
    claims: list[Claim] = []
    oddities: list[Oddity] = []
    jobs: list[tuple[str, Workload]] = []
    for path in _files(folder):
        pairs = [line.partition("=")[::2] for line in _lines(path, oddities)]
        facts = {key: value for key, value in pairs if value and _is_text(value)}
        job = facts.get("job_id", "")
        if not _is_word(job):
            if pairs:
                oddities.append(Oddity("bad_file", f"{path}: names no job"))
            continue
        workload = Workload(job_id=job, user=facts.get("user", ""), account=facts.get("account", ""))
        jobs += [(name, workload) for name in (job, facts.get("sluid", "")) if name]
        for key, value in pairs:
            if key == "gpu" and (entity := _find(named, value)) is not None:
                claims.append(Claim(entity, workload, facts.get("sharing") == "mps", uid=_uid(facts.get("uid", ""))))
            elif key == "gpu":
                oddities += _unknown_device(path, value)
    return Found(claims, oddities, jobs)


def _unknown_device(path: Path, name: str = "") -> tuple[Oddity]:
    named = f": {name[:80]!r}" if name else ""
    return (Oddity("unknown_device", f"{path}: names a GPU that this node does not have{named}"),)


def _by_uuid(devices: Sequence[Device]) -> dict[str, Entity]:
    """Boards by their UUID, instances by their own."""
    named = {device.entity.uuid: device.entity for device in devices if device.entity.gpu_instance is None}
    return named | {device.mig_uuid: device.entity for device in devices if device.mig_uuid} | _by_instance(devices)


def _by_instance(devices: Sequence[Device]) -> dict[str, Entity]:
    """Instances by board and number, as the drivers before R470 name them (without the compute instance)."""
    return {
        f"MIG-{device.entity.uuid}/{device.entity.gpu_instance}": device.entity
        for device in devices
        if device.entity.gpu_instance is not None
    }


def _find(named: dict[str, Entity], name: str) -> Entity | None:
    old = _OLD_MIG.fullmatch(name)
    return named.get(f"MIG-{old[1]}/{int(old[2])}" if old else name)


def _uid(value: str) -> int | None:
    return int(value) if _UID.fullmatch(value) else None


def _is_text(value: str) -> bool:
    return len(value) <= MOST_TEXT and value.isprintable()


def _is_word(value: str) -> bool:
    return bool(value) and _is_text(value) and " " not in value and "\N{REPLACEMENT CHARACTER}" not in value


def _files(folder: Path) -> Iterator[Path]:
    """The files of a folder in the order of their names; a dot begins those that are still being written."""
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry in itertools.islice(entries, MOST_FILES + 1) if not entry.is_dir()]
    except OSError as error:
        raise AttributionError(
            f"the job mapping folder {folder} cannot be read: {error.strerror or error}",
            "check that the prolog that writes it is installed and has run since the last boot, and that the "
            "exporter can read the folder",
        ) from error
    if len(names) > MOST_FILES:
        raise AttributionError(
            f"the job mapping folder {folder} has more than {MOST_FILES} files: some must be from ended jobs",
            "check the epilog, and remove the files of jobs that `squeue` does not list",
        )
    for name in sorted(names):
        if not name.startswith("."):
            yield folder / name


def _lines(path: Path, oddities: list[Oddity]) -> Sequence[str]:
    """Lines that are not empty; none, and an oddity, when the file cannot be read or says too much."""
    try:
        lines = [line.strip() for line in read_small(path).splitlines()]
    except NotSmall as error:
        oddities.append(Oddity("too_large", f"{path}: {error}"))
        return ()
    except FileNotFoundError:
        return ()  # the job has just ended
    except OSError as error:
        oddities.append(Oddity("unreadable", f"{path} cannot be read: {error.strerror or error}"))
        return ()
    lines = [line for line in lines if line]
    if len(lines) > MOST_JOBS:
        oddities.append(Oddity("too_large", f"{path}: more than {MOST_JOBS} lines"))
        return ()
    return lines
