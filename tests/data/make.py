"""Makes the files of this folder from whole captures: ``python -m tests.data.make FOLDER``.

Only what the exporter reads is kept: figures, labels, names of functions and fields. Descriptions, comments, names of
kernels and everything about the machine are left out; identifiers are replaced.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import re
import shutil
import sqlite3
import sys
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import yaml

from tests.data import HERE

PAGES = (
    "a100_mig_1g5gb_dcgmproftester.prom",
    "a100_mig_4_instances.txt",
    "a100_mig_active_1g5gb.txt",
    "h100x8_pod_labels.prom",
    "l40s.prom",
    "t4_under_load.prom",
    "vgpu_a100_40c_no_profiling.prom",
)
SUPPORT = ("Tesla_P100-PCIE-16GB", "Tesla_V100-SXM2-16GB")
REPORTS = ("a100-sxm4-v12.xml", "qx-b200.xml", "qx-h100.xml", "qx-t4.xml")
TRACES = ("a100_ddp_rank3of8", "b200_eager_rank0of8", "rtx2080ti_resnet_input_bound")
RANKS = "v100x8_dlrm_8ranks.tar.gz"
NSIGHT = "saxpy_a100_nsys2022.sqlite"
SCHEMAS = ("schema_perlmutter_2022.sql", "schema_perlmutter_2024.sql")
OPERATOR = ("podmonitors", "prometheusrules", "servicemonitors")


def page(text: str) -> str:
    """A /metrics page: samples and types whole, of a HELP the unit alone, titles between the samples replaced."""
    lines = []
    for line in text.splitlines():
        if line.startswith("# HELP"):
            unit = re.search(r"\(in [^)]*\)", line)
            lines.append(" ".join([*line.split()[:3], *([unit[0]] if unit else [])]))
        elif line.strip() and not line.startswith(("#", "DCGM")):
            lines.append("A title")
        else:
            lines.append(re.sub(r'pod="[^"]+"', 'pod="worker-0"', re.sub(r'namespace="[^"]+"', 'namespace="ml"', line)))
    return "\n".join(lines) + "\n"


_BOARD = [
    "product_name",
    "minor_number",
    "persistence_mode",
    "pci/pci_bus_id",
    "pci/pci_device_id",
    "pci/pci_gpu_link_info/pcie_gen/current_link_gen",
    "pci/pci_gpu_link_info/pcie_gen/max_link_gen",
    "pci/pci_gpu_link_info/link_widths/current_link_width",
    "pci/pci_gpu_link_info/link_widths/max_link_width",
    "fb_memory_usage/total",
    "fb_memory_usage/used",
    "fb_memory_usage/reserved",
    "clocks/graphics_clock",
    "clocks/sm_clock",
    "clocks/mem_clock",
    "clocks/video_clock",
    "max_clocks/graphics_clock",
    "max_clocks/sm_clock",
    "max_clocks/mem_clock",
    "max_clocks/video_clock",
    "gpu_power_readings/average_power_draw",
    "gpu_power_readings/power_draw",
    "gpu_power_readings/instant_power_draw",
    "gpu_power_readings/current_power_limit",
    "gpu_power_readings/default_power_limit",
    "gpu_power_readings/min_power_limit",
    "gpu_power_readings/max_power_limit",
    "temperature/gpu_temp",
    "temperature/memory_temp",
    "mig_devices/mig_device/gpu_instance_id",
    "mig_devices/mig_device/fb_memory_usage/total",
    "mig_devices/mig_device/device_attributes/shared/multiprocessor_count",
]


def report(source: Path) -> bytes:
    """``nvidia-smi -q -x``: what tests/abi/scenarios compares, and nothing else."""
    root = ElementTree.parse(source).getroot()
    _prune(root, ["driver_version", *(f"gpu/{path}" for path in _BOARD)])
    ElementTree.indent(root, " ")
    return ElementTree.tostring(root) + b"\n"


def _prune(element: ElementTree.Element, wanted: list[str]) -> None:
    element.attrib.clear()
    for child in list(element):
        below = [path.partition("/")[2] for path in wanted if path.partition("/")[0] == child.tag]
        if not below:
            element.remove(child)
        elif any(below):
            _prune(child, below)


def layout(text: str) -> str:
    """The MIG layout in ``nvidia-smi -q``."""
    head = "idle :: query (-q)"
    query = text[text.index(head) :].split("Accounting Mode", maxsplit=1)[0]
    labels = "GPU Instance ID|Multiprocessor count|Copy Engine count|Decoder count|JPG count"
    kept = re.findall(rf" +(?:{labels}) +: \d+|Shared FB Memory Usage\n +Total +: \d+", query)
    return "\n".join([head, *(line.strip() for line in kept), "Accounting Mode"]) + "\n"


def symbols(text: str) -> str:
    """Names of the functions that a driver's library has."""
    head = ":: nvml-symbols"
    return "\n".join([head, *re.findall(r"^nvml\w+$", text[text.index(head) :], re.MULTILINE)]) + "\n"


_ARGS = ("device", "inDevice", "block", "blocks per SM", "est. achieved occupancy %")
_SIZES = ("registers per thread", "shared memory")
_PROPERTIES = (
    "id",
    "numSms",
    "maxThreadsPerMultiprocessor",
    "regsPerMultiprocessor",
    "sharedMemPerMultiprocessor",
    "computeMajor",
    "name",
)
_LOADER = "enumerate(DataLoader)"


def kineto(trace: Mapping[str, Any], zero: float) -> str:
    """A PyTorch trace: kernels, copies and waits for the loader; the host's operators as one that spans them all."""
    events = [event for event in trace["traceEvents"] if event.get("ph") == "X"]
    host = [e for e in events if str(e.get("cat")).lower() in ("cpu_op", "user_annotation", "gpu_memset")]
    start = min(e["ts"] for e in host)
    end = max(e["ts"] + e["dur"] for e in host)
    span = {"ph": "X", "cat": "cpu_op", "name": "host", "ts": _since(start, zero), "dur": round(end - start, 3)}
    kept = [span, *(made for event in events if (made := _event(event, zero)))]
    properties = [{key: gpu[key] for key in _PROPERTIES if key in gpu} for gpu in trace["deviceProperties"]]
    head: dict[str, Any] = {"deviceProperties": properties}
    if "distributedInfo" in trace:
        head["distributedInfo"] = {"rank": trace["distributedInfo"]["rank"]}
    rows = ",\n".join(json.dumps(event, separators=(",", ":")) for event in kept)
    return f'{json.dumps(head)[:-1]}, "traceEvents": [\n{rows}\n]}}\n'


def _event(event: Mapping[str, Any], zero: float) -> dict[str, Any] | None:
    kind, name, args = str(event["cat"]).lower(), str(event.get("name", "")), event.get("args", {})
    made = {"ph": "X", "cat": kind, "ts": _since(event["ts"], zero), "dur": event["dur"]}
    if kind == "kernel":
        given = [*_ARGS, *(_SIZES if not args.get("est. achieved occupancy %") else ())]
        if "blocks per SM" not in args:
            given.append("grid")
        short = "nccl" if "nccl" in name.lower() else "k"
        return {**made, "name": short, "args": {key: args[key] for key in given if key in args}}
    if kind == "gpu_memcpy":
        way = re.search(r"[HDAP]to[HDAP]", name)
        given = ["device", "inDevice", "bytes"]
        return {**made, "name": way[0] if way else "", "args": {key: args[key] for key in given if key in args}}
    if kind == "user_annotation" and name.startswith(_LOADER):
        return {**made, "name": _LOADER}
    return None


def _since(time: float, zero: float) -> float:
    return round(time - zero, 3)


def ranks(source: Path) -> bytes:
    """An archive of the ranks of one step; their clocks stay relative to each other."""
    with tarfile.open(source) as archive:
        read = [archive.extractfile(member) for member in archive if member.isfile()]
        traces = [json.load(file) for file in read if file is not None]
    traces.sort(key=lambda trace: int(trace["distributedInfo"]["rank"]))
    zero = min(event["ts"] for trace in traces for event in trace["traceEvents"] if event.get("ph") == "X")
    body = io.BytesIO()
    with tarfile.open(fileobj=body, mode="w") as made:
        for number, trace in enumerate(traces):
            text = kineto(trace, zero).encode()
            info = tarfile.TarInfo(f"dlrm/worker{number}.json")
            info.size = len(text)
            made.addfile(info, io.BytesIO(text))
    return zipped(body.getvalue())


def zipped(data: bytes) -> bytes:
    """Gzip without a time, so that the same input gives the same file."""
    return gzip.compress(data, 9, mtime=0)


NSIGHT_TABLES: Mapping[str, tuple[str, ...]] = {
    "CUPTI_ACTIVITY_KIND_KERNEL": (
        *("start", "end", "deviceId", "globalPid", "shortName", "registersPerThread", "gridX", "gridY", "gridZ"),
        *("blockX", "blockY", "blockZ", "staticSharedMemory", "dynamicSharedMemory"),
    ),
    "CUPTI_ACTIVITY_KIND_MEMCPY": ("start", "end", "deviceId", "globalPid", "bytes", "copyKind"),
    "CUPTI_ACTIVITY_KIND_RUNTIME": ("start", "end"),
    "TARGET_INFO_GPU": (
        *("id", "name", "busLocation", "smCount", "uuid", "cuDevice", "maxWarpsPerSm", "maxBlocksPerSm"),
        *("maxRegistersPerSm", "maxShmemPerSm", "computeMajor"),
    ),
    "StringIds": ("id", "value"),
}


def nsight(source: Path, target: Path) -> None:
    """A SQLite export: the columns that are read, of the host's calls the first and the last time."""
    target.unlink(missing_ok=True)
    with sqlite3.connect(target) as made, sqlite3.connect(f"file:{source}?mode=ro&immutable=1", uri=True) as whole:
        made.execute("PRAGMA page_size = 1024")
        for table, columns in NSIGHT_TABLES.items():
            names = ", ".join(f'"{column}"' for column in columns)
            rows = whole.execute(f"SELECT {names} FROM {table}").fetchall()
            if table == "CUPTI_ACTIVITY_KIND_RUNTIME":
                rows = [(min(a for a, _ in rows), min(a for a, _ in rows)), (max(b for _, b in rows),) * 2]
            if table == "StringIds":
                kernels = {number for (number,) in whole.execute("SELECT shortName FROM CUPTI_ACTIVITY_KIND_KERNEL")}
                rows = [(number, "saxpy") for number, _ in rows if number in kernels]
            made.execute(f"CREATE TABLE {table} ({names})")
            made.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(columns))})", rows)
    made.close()
    whole.close()


def tables(text: str) -> Iterator[str]:
    """Definitions of those tables: names, types and constraints of all columns, comments left out."""
    for body in re.findall(r"CREATE TABLE.*?;", text, re.DOTALL):
        plain = re.sub(r"--[^\n]*", "", body)
        name = re.search(r"CREATE TABLE (?:IF NOT EXISTS )?[\"']?(\w+)", plain)
        if name and name[1] in (*NSIGHT_TABLES, "TARGET_INFO_CUDA_DEVICE"):
            yield re.sub(r"\s+", " ", re.sub(r" *\n *", " ", plain)).replace(", ", ",\n  ")


def replaced(text: str) -> str:
    """Ids of containers, pods and layers, each by another one of its form; the same one by the same."""

    def other(match: re.Match[str]) -> str:
        plain = re.sub("[-_]", "", match[0]).lower()
        digest = hashlib.sha256(plain.encode()).hexdigest()
        made = iter(digest[: len(plain)])
        return "".join(letter if letter in "-_" else next(made) for letter in match[0])

    uuid = r"[0-9a-f]{8}([-_])[0-9a-f]{4}(?:\1[0-9a-f]{4}){2}\1[0-9a-f]{12}"
    text = re.sub(r"\bl/[A-Z0-9]{26}\b", lambda m: f"l/{hashlib.sha256(m[0].encode()).hexdigest()[:26].upper()}", text)
    whole = r"(?<![0-9a-f])(?:[0-9a-f]{64}|[0-9a-f]{32})(?![0-9a-f])"
    return re.sub(f"{uuid}|{whole}", other, text)


def undescribed(schema: Any) -> Any:
    """A schema without its descriptions."""
    if isinstance(schema, list):
        return [undescribed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {k: undescribed(v) for k, v in schema.items() if not (k == "description" and isinstance(v, str))}


def operator(sources: Iterable[Path]) -> str:
    """Kind -> schema of its spec, one line each."""
    found = {}
    for source in sources:
        spec = yaml.safe_load(source.read_text())["spec"]
        (version,) = [v for v in spec["versions"] if v["name"] == "v1"]
        found[spec["names"]["kind"]] = undescribed(version["schema"]["openAPIV3Schema"]["properties"]["spec"])
    lines = (f"{json.dumps(kind)}: {json.dumps(schema)}" for kind, schema in found.items())
    return "{\n" + ",\n".join(lines) + "\n}\n"


def ports(source: Path) -> str:
    """Files below /sys/class/infiniband: path -> text; names and versions of the adapters left out."""
    with tarfile.open(source) as archive:
        read = {m.name: archive.extractfile(m) for m in archive if m.isfile() and "/ports/" in m.name}
        texts = {name: file.read().decode() for name, file in read.items() if file is not None}
    kept = {name: text for name, text in texts.items() if re.search(r"/(state|rate|link_layer)$|counters/", name)}
    return json.dumps(dict(sorted(kept.items())), indent=0) + "\n"


def make(captures: Path, target: Path = HERE) -> None:
    """Write all files."""
    exporter, smi, hosts, traces = (target / n for n in ("dcgm_exporter", "nvidia_smi", "hosts", "traces"))
    for folder in (exporter / "field_support", smi, hosts / "cgroup", hosts / "pressure", traces):
        folder.mkdir(parents=True, exist_ok=True)
    for name in PAGES:
        (exporter / name).write_text(page((captures / "dcgm_exporter" / name).read_text()))
    for name in SUPPORT:
        shutil.copyfile(captures / f"dcgm_exporter/field_support/{name}.yaml", exporter / f"field_support/{name}.yaml")
    for name in REPORTS:
        (smi / name).write_bytes(report(captures / "nvidia_smi" / name))
    for name, reduced in (("h100_mig_idle_and_load.txt", layout), ("h100_idle_and_load.txt", symbols)):
        (smi / name).write_text(reduced((captures / "nvidia_smi" / name).read_text()))
    for name in ("cpu", "io", "memory"):
        shutil.copyfile(captures / f"hosts/pressure/{name}", hosts / "pressure" / name)
    for source in sorted((captures / "hosts/cgroup").iterdir()):
        (hosts / "cgroup" / source.name).write_text(replaced(source.read_text()))
    (hosts / "infiniband.json").write_text(ports(captures / "hosts/infiniband/h100_node_two_hcas.tar.gz"))
    for name in TRACES:
        with gzip.open(captures / f"traces/{name}.json.gz") as file:
            trace = json.load(file)
        zero = min(event["ts"] for event in trace["traceEvents"] if event.get("ph") == "X")
        (traces / f"{name}.json.gz").write_bytes(zipped(kineto(trace, zero).encode()))
    (traces / RANKS).write_bytes(ranks(captures / "traces" / RANKS))
    nsight(captures / "traces" / NSIGHT, traces / NSIGHT)
    for name in SCHEMAS:
        (traces / name).write_text("\n".join(tables((captures / "traces" / name).read_text())) + "\n")
    (target / "operator.json").write_text(operator(captures / f"crds/{name}.yaml" for name in OPERATOR))


if __name__ == "__main__":
    make(Path(sys.argv[1]))
