"""One row of the table of peaks, checked: what a person wrote in YAML, with every key and value as it must be."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypedDict, cast


class MigRow(TypedDict, total=False):
    """``compute_slices`` and ``memory_slices`` are always there."""

    compute_slices: int
    memory_slices: int
    multiprocessors: dict[str, int]


class PeaksRow(TypedDict, total=False):
    """The form of a row; ``names`` is always there. The units are in ``exporter.hardware.peaks.Peaks``."""

    names: list[str]
    model: str
    source: str
    multiprocessors: int
    reference_clock_hertz: float
    flops: dict[str, float]
    dram_bytes_per_second: float
    nvlink_bytes_per_second: float
    pcie_generation: int
    pcie_lanes: int
    power_watts: float
    memory_gigabytes: float
    mig: MigRow
    attainable: dict[str, float]


def read_rows(document: object, where: str) -> list[PeaksRow]:
    """The rows of a YAML document; none for an empty one. ValueError names the row, the key and what it must be."""
    if document is None:
        return []
    if not isinstance(document, list):
        raise ValueError(f"{where}: must be a list of rows, each with names")
    return [_read_row(row, f"{where}: row {number}") for number, row in enumerate(document, start=1)]


def _read_row(row: object, where: str) -> PeaksRow:
    read = _mapping(row, where, _KEYS)
    if "names" not in read:
        raise ValueError(f"{where}: needs names, the model names as nvidia-smi -L prints them")
    return cast("PeaksRow", read)


def _mapping(value: object, where: str, keys: Mapping[str, Callable[[object, str], object]]) -> dict[str, object]:
    if not isinstance(value, dict):
        raise ValueError(f"{where}: must be a mapping with keys of {', '.join(keys)}")
    unknown = [str(key) for key in value if key not in keys]
    if unknown:
        raise ValueError(f"{where}: unknown key {unknown[0]!r}; known are {', '.join(keys)}")
    return {key: keys[key](item, f"{where}, {key}") for key, item in value.items()}


def _positive(value: object, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < float("inf"):
        raise ValueError(f"{where}: must be a number above 0, is {value!r} (YAML wants 1.5e+12, with point and sign)")
    return float(value)


def _count(value: object, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"{where}: must be a whole number above 0, is {value!r}")
    return value


def _ratio(value: object, where: str) -> float:
    ratio = _positive(value, where)
    if ratio > 1:
        raise ValueError(f"{where}: must be a ratio of at most 1, is {value!r}")
    return ratio


def _text(value: object, where: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{where}: must be a text, is {value!r}")
    return value


def _names(value: object, where: str) -> list[str]:
    if not isinstance(value, list) or not value:
        raise ValueError(f"{where}: must be a list of model names")
    names = [_text(name, where) for name in value]
    for name in names:
        if not any(character.isalnum() for character in name):
            raise ValueError(f"{where}: {name!r} would match every model")
    return names


def _by_key(read: Callable[[object, str], object]) -> Callable[[object, str], dict[str, object]]:
    def read_all(value: object, where: str) -> dict[str, object]:
        if not isinstance(value, dict):
            raise ValueError(f"{where}: must be a mapping")
        return {_text(key, where): read(item, f"{where}, {key}") for key, item in value.items()}

    return read_all


def _mig(value: object, where: str) -> dict[str, object]:
    read = _mapping(
        value, where, {"compute_slices": _count, "memory_slices": _count, "multiprocessors": _by_key(_count)}
    )
    if not {"compute_slices", "memory_slices"} <= read.keys():
        raise ValueError(f"{where}: needs compute_slices and memory_slices")
    return read


_KEYS: Mapping[str, Callable[[object, str], object]] = {
    "names": _names,
    "model": _text,
    "source": _text,
    "multiprocessors": _count,
    "reference_clock_hertz": _positive,
    "flops": _by_key(_positive),
    "dram_bytes_per_second": _positive,
    "nvlink_bytes_per_second": _positive,
    "pcie_generation": _count,
    "pcie_lanes": _count,
    "power_watts": _positive,
    "memory_gigabytes": _positive,
    "mig": _mig,
    "attainable": _by_key(_ratio),
}
