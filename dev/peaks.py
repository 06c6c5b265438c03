"""Makes exporter/peaks.yaml from the collected table of peaks: ``dev/peaks.py dev/peaks.csv > exporter/peaks.yaml``.

What ships and what not: a value that the table calls uncertain, or that only memory gives, is left out unless
CONFIRMED names a second source for it. A reference clock is fp16 / (SMs * rate), so it falls with any of the three.
"""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

FP16, SMS, RATE, CLOCK = (
    "fp16_bf16_tensor_tflops_dense",
    "sm_count",
    "fp16_dense_flop_per_clk_per_sm",
    "peak_ref_clock_mhz",
)
DTYPES = {  # dtype -> column, in TFLOP/s
    "fp16": FP16,
    "fp8": "fp8_tensor_tflops_dense",
    "fp4": "fp4_tensor_tflops_dense",
    "tf32": "tf32_tensor_tflops_dense",
    "fp64": "fp64_tensor_tflops",
}
SCALARS = {  # key -> (column, factor to the base unit)
    "multiprocessors": (SMS, 1.0),
    "reference_clock_hertz": (CLOCK, 1e6),
    "dram_bytes_per_second": ("mem_bw_GBps", 1e9),
    "nvlink_bytes_per_second": ("nvlink_per_direction_GBps", 1e9),
    "pcie_generation": ("pcie_gen", 1.0),
    "pcie_lanes": ("pcie_lanes", 1.0),
    "power_watts": ("tdp_w", 1.0),
    "memory_gigabytes": ("mem_gb", 1.0),
}
COLUMNS = {*DTYPES.values(), *(column for column, _ in SCALARS.values())}

# words of the column uncertain_fields -> columns
WORDS: Mapping[str, tuple[str, ...]] = {
    "all": tuple(sorted({*COLUMNS, RATE})),
    "nvlink": ("nvlink_per_direction_GBps",),
    "mem_bw": ("mem_bw_GBps",),
    "mem_gb": ("mem_gb",),
    "fp16": (FP16,),
    "fp8": (DTYPES["fp8"],),
    "fp4": (DTYPES["fp4"],),
    "tf32": (DTYPES["tf32"],),
    "fp64": (DTYPES["fp64"],),
    "fp32": (),  # not exported
    "INT8": (),
    "pcie": ("pcie_gen", "pcie_lanes"),
    "tdp": ("tdp_w",),
    "sm_count": (SMS,),
    "SM count": (SMS,),
    "tensor rate per SM": (RATE,),
    "ref clock follows sm_count": (),  # holds for every row, see _left_out
    "141 GB variant exists": (),  # it has another name
    "boost clock": (),  # the maximum clock is not used
    "clock": (),
}

# what a source gives; None: nothing by itself. A note in brackets ("(TDP 600)") narrows it.
SOURCES: Mapping[str, frozenset[str] | None] = {
    "NVIDIA datasheet figure (from memory": None,
    "FLOP/clk/SM identity": None,
    "Lightning throughput.py": frozenset(DTYPES.values()),
    "stas00/ml-engineering@744d01e compute/accelerator/README.md": frozenset(
        {*DTYPES.values(), "mem_gb", "mem_bw_GBps", "tdp_w"}
    ),
    "pytorch/torchtitan tools/utils.py": frozenset({FP16}),
}
NARROWED = {"(TDP 600)": frozenset({"tdp_w"}), "(TDP)": frozenset({"tdp_w"})}

NCCL_1264 = "NVIDIA/nccl#1264: 376 to 380 of 450 GB/s, one direction"
JAX = "jax-ml/jax gpu_info.py core_count"
ML = "stas00/ml-engineering@744d01e compute/accelerator/README.md"
MAMF = f"{ML}, maximum achievable matmul FLOPS, BF16"
MIG_GUIDE = "NVIDIA MIG User Guide, supported profiles"
PROPERTIES = "printed torch.cuda.get_device_properties"

# (model, column) -> (value, where the second source is)
CONFIRMED: Mapping[tuple[str, str], tuple[float, str]] = {
    ("V100-PCIe-16GB", SMS): (80, "io-tech.fi on the V100 PCIe"),
    ("V100-PCIe-16GB", "mem_bw_GBps"): (900, "io-tech.fi on the V100 PCIe"),
    ("V100-PCIe-16GB", "tdp_w"): (250, "io-tech.fi on the V100 PCIe"),
    ("V100-PCIe-32GB", SMS): (80, "same board as the 16 GB one"),
    ("V100-PCIe-32GB", "mem_bw_GBps"): (900, "same board as the 16 GB one"),
    ("V100-PCIe-32GB", "tdp_w"): (250, "same board as the 16 GB one"),
    ("A10G (AWS g5)", SMS): (80, f"{PROPERTIES} in the PyTorch documentation"),
    ("A10G (AWS g5)", "mem_bw_GBps"): (600, "baseten.co, A10 against A10G"),
    ("L40", FP16): (181.05, "volcengine/verl and NVIDIA's L40 sheet agree; twice that is the sparse figure"),
    ("H100-PCIe-80GB", "mem_bw_GBps"): (2000, f"{ML}; hpctech.co.jp data sheet"),
    ("H200-NVL-141GB", "mem_bw_GBps"): (4800, "openmetal.io on the H200 NVL"),
    ("H200-NVL-141GB", "mem_gb"): (141, MIG_GUIDE),
    ("GH200-144GB", "mem_gb"): (144, "its profiles 1g.18gb and 1g.36gb, NVIDIA/mig-parted#139"),
    ("H20-96GB", SMS): (78, f"{PROPERTIES}, several repositories"),
    ("B200-SXM-180GB", "mem_bw_GBps"): (8000, f"{ML}; zdszero.github.io"),
    ("B200-SXM-180GB", DTYPES["tf32"]): (1125, f"{ML}; half of fp16"),
    ("GB200-186GB", SMS): (152, f"{JAX}; hao-ai-lab/FastVideo fixture"),
    ("GB300-288GB", SMS): (152, JAX),
    ("GB300-288GB", "mem_bw_GBps"): (8000, "developer.nvidia.com, Inside NVIDIA Blackwell Ultra"),
    ("GB300-288GB", "nvlink_per_direction_GBps"): (900, "stas00/ml-engineering network/README.md, NVLink 5"),
    ("RTX PRO 6000 Blackwell WS", SMS): (188, JAX),
    ("RTX PRO 6000 Blackwell WS", "mem_bw_GBps"): (1792, "hardware-corner.net; videocardz"),
    ("RTX PRO 6000 Blackwell WS", "tdp_w"): (600, "hardware-corner.net"),
    ("RTX PRO 6000 Blackwell WS", "mem_gb"): (96, MIG_GUIDE),
    ("RTX PRO 6000 Blackwell Server", SMS): (188, JAX),
    ("RTX PRO 6000 Blackwell Server", "mem_gb"): (96, MIG_GUIDE),
}

MORE_NAMES = {"B300-SXM-288GB": ("NVIDIA B300",)}  # as jax-ml/jax gpu_info.py has it


class Mig(NamedTuple):
    """How a board is dealt out. ``sms``: profile -> SMs, where ``nvidia-smi mig -lgip`` of it was seen."""

    compute: int
    memory: int
    sms: Mapping[str, int]
    source: str


A100_40 = {"1g.5gb": 14, "1g.10gb": 14, "2g.10gb": 28, "3g.20gb": 42, "4g.20gb": 56, "7g.40gb": 98}
A100_80 = {"1g.10gb": 14, "1g.20gb": 14, "2g.20gb": 28, "3g.40gb": 42, "4g.40gb": 56, "7g.80gb": 98}
LGIP = f"{MIG_GUIDE}; nvidia-smi mig -lgip"
SEVENTHS = Mig(7, 8, {}, MIG_GUIDE)
MIGS: Mapping[str, Mig] = {
    "A30": Mig(4, 4, {"1g.6gb": 14, "2g.12gb": 28, "4g.24gb": 56}, LGIP),
    "A100-SXM4-40GB": Mig(7, 8, A100_40, LGIP),
    "A100-PCIe-40GB": Mig(7, 8, A100_40, LGIP),
    "A100-SXM4-80GB": Mig(7, 8, A100_80, f"{LGIP} of the 40 GB board; NVIDIA/k8s-test-infra"),
    "A100-PCIe-80GB": Mig(7, 8, A100_80, f"{LGIP} of the 40 GB board"),
    "H100-SXM5-80GB": Mig(
        7,
        8,
        {"1g.10gb": 16, "1g.20gb": 26, "2g.20gb": 32, "3g.40gb": 60, "4g.40gb": 64, "7g.80gb": 132},
        f"{LGIP} (jbarrow.ai); utkuozdemir/nvidia_gpu_exporter capture",
    ),
    "H100-PCIe-80GB": SEVENTHS,
    "H100-NVL-94GB": Mig(7, 8, {"1g.12gb": 16, "1g.24gb": 26}, f"{LGIP} in NVIDIA/gpu-operator#903"),
    "H200-SXM-141GB": Mig(
        7,
        8,
        {"1g.18gb": 16, "1g.35gb": 26, "2g.35gb": 32, "3g.71gb": 60, "4g.71gb": 64, "7g.141gb": 132},
        f"{LGIP} in NVIDIA/mig-parted#120",
    ),
    "H200-NVL-141GB": SEVENTHS,
    "H20-96GB": SEVENTHS,
    "GH200-96GB": SEVENTHS,
    "GH200-144GB": Mig(7, 8, {"1g.18gb": 16, "1g.36gb": 26, "2g.36gb": 32}, f"{LGIP} in NVIDIA/mig-parted#139"),
    "B200-SXM-180GB": Mig(7, 8, {"1g.23gb": 18, "1g.45gb": 30, "2g.45gb": 36}, f"{LGIP} in NVIDIA/mig-parted#166"),
    "GB200-186GB": Mig(
        7,
        8,
        {"1g.23gb": 18, "1g.24gb": 18, "1g.47gb": 32, "2g.47gb": 38},
        f"{LGIP} in NVIDIA/gpu-operator#1303 and NVIDIA/mig-parted#227",
    ),
    "RTX PRO 6000 Blackwell WS": Mig(4, 4, {}, MIG_GUIDE),
    "RTX PRO 6000 Blackwell Server": Mig(4, 4, {"1g.24gb": 46}, f"{LGIP} in bigstack-oss/cubecos#312"),
}

# model -> unit -> (what was reached / the peak, where that is published)
ATTAINABLE: Mapping[str, Mapping[str, tuple[float, str]]] = {
    "A100-SXM4-40GB": {"tensor": (0.869, MAMF)},
    "A100-SXM4-80GB": {"tensor": (0.869, MAMF)},
    "A100-PCIe-40GB": {"tensor": (0.811, MAMF)},
    "A100-PCIe-80GB": {"tensor": (0.811, MAMF)},
    "H100-SXM5-80GB": {"tensor": (0.803, MAMF), "nvlink": (0.84, NCCL_1264)},
    "H200-SXM-141GB": {
        "tensor": (0.803, MAMF),
        "nvlink": (0.88, "stas00/ml-engineering network/README.md, 396 of 450 GB/s"),
    },
    "GH200-144GB": {"tensor": (0.838, MAMF)},
    "B200-SXM-180GB": {"tensor": (0.776, MAMF)},
    "B300-SXM-288GB": {"tensor": (0.786, MAMF)},
    "GB200-186GB": {"tensor": (0.729, MAMF)},
}

HEADER = """\
# What each GPU model can do at best. Made by dev/peaks.py; change that, not this.
#
# names: the driver's model name, without the vendor's word; "*" at the end: and any words after it.
# flops: dense, per second, by the type that the tensor cores work on; fp16 stands for bf16 too.
# reference_clock_hertz: the SM clock at which the flops are reached, which is not the maximum clock.
# nvlink_bytes_per_second: per direction. power_watts: the default limit. memory_gigabytes: as in the product's name.
# mig: slices of the board, and SMs by profile where known. attainable: what published benchmarks reach, of the peak.
# A key that is missing is not known well enough; "left out" says which.
"""


def main() -> None:
    with Path(sys.argv[1]).open(newline="") as table:
        sys.stdout.write(render(csv.DictReader(table)))


def render(rows: Iterable[Mapping[str, str]]) -> str:
    """The text of peaks.yaml. KeyError for a word or a source that the tables above do not know."""
    return HEADER + "".join(line + "\n" for row in rows for line in _row(row))


def _row(row: Mapping[str, str]) -> Iterator[str]:
    model = row["model"]
    missing = _left_out(row)
    values = {column: _value(row, column, missing) for column in sorted(COLUMNS)}
    yield ""
    yield f"- model: {model}"
    yield f"  names: [{', '.join((row['nvml_name_hint'], *MORE_NAMES.get(model, ())))}]"
    for key, (column, factor) in SCALARS.items():
        if (value := values[column]) is not None:
            yield f"  {key}: {_number(value * factor)}"
    flops = {dtype: value for dtype, column in DTYPES.items() if (value := values[column]) is not None}
    if flops:
        yield f"  flops: {{{', '.join(f'{dtype}: {_number(value * 1e12)}' for dtype, value in flops.items())}}}"
    if (mig := MIGS.get(model)) is not None:
        yield f"  mig:  # {mig.source}"
        yield f"    compute_slices: {mig.compute}"
        yield f"    memory_slices: {mig.memory}"
        if mig.sms:
            yield f"    multiprocessors: {{{', '.join(f'{name}: {count}' for name, count in mig.sms.items())}}}"
    if reached := ATTAINABLE.get(model):
        yield "  attainable:"
        for unit, (ratio, source) in reached.items():
            yield f"    {unit}: {ratio}  # {source}"
    yield f"  source: {_quoted(row['source'])}"
    for (name, column), (_, source) in CONFIRMED.items():
        if name == model:
            yield f"  # {column}: {source}"
    if gone := [column for column in sorted(missing & COLUMNS) if row[column] and values[column] is None]:
        yield f"  # left out: {', '.join(gone)}"


def _value(row: Mapping[str, str], column: str, missing: frozenset[str]) -> float | None:
    if confirmed := CONFIRMED.get((row["model"], column)):
        return confirmed[0]
    return float(row[column]) if row[column] and column not in missing else None


def _left_out(row: Mapping[str, str]) -> frozenset[str]:
    without_notes = re.sub(r"\([^()]*\)", "", row["uncertain_fields"])
    words = [word.strip() for word in re.split("[;,/]", without_notes) if word.strip()]
    missing = {column for word in words for column in WORDS[word]}
    if "from memory" in row["source"]:
        missing |= COLUMNS - _sourced(row["source"])
    missing -= {column for model, column in CONFIRMED if model == row["model"]}
    if missing & {FP16, SMS, RATE}:
        missing.add(CLOCK)
    else:  # the identity gives it
        missing.discard(CLOCK)
    return frozenset(missing)


def _sourced(text: str) -> frozenset[str]:
    """The columns for which a row has more than memory."""
    given: set[str] = set()
    for part in text.split("; "):
        source = next(name for name in SOURCES if part.startswith(name))
        narrowed = next((columns for note, columns in NARROWED.items() if note in part), None)
        given |= narrowed or SOURCES[source] or frozenset()
    return frozenset(given)


def _number(value: float) -> str:
    text = f"{value:.6g}"
    return text.replace("e+", ".0e+") if "e+" in text and "." not in text else text  # YAML 1.1 wants the point


def _quoted(text: str) -> str:
    return '"' + text.replace('"', "'") + '"'


if __name__ == "__main__":
    main()
