"""The peaks of a GPU model, by the model name that the driver gives.

The figures lie in ``exporter/peaks.yaml``, each row with its source; a configuration may add rows of the same form.
A name stands for one product: "NVIDIA A10" is not the A10G, and no vGPU, laptop or regional variant of a board gets
the board's figures. A name that ends in "*" stands for all names that begin with its words; the longest match wins.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from exporter import strict_yaml
from exporter.hardware.row import PeaksRow, read_rows

VENDOR_WORDS = frozenset({"nvidia", "tesla"})  # drivers leave them off or change them; GRID is not one: it is a vGPU


@dataclass(frozen=True, slots=True)
class MigLayout:
    """Into how many slices a board is dealt, and the SMs of a profile where they are known."""

    compute_slices: int
    memory_slices: int
    multiprocessors: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Peaks:
    """What a board, or one MIG instance of it, can do at best. None: not known well enough; nothing is guessed."""

    model: str
    source: str
    multiprocessors: int | None = None
    reference_clock_hertz: float | None = None  # the SM clock at which ``flops`` are reached; not the maximum clock
    flops: Mapping[str, float] = field(default_factory=dict)  # dense, per second, by tensor data type
    dram_bytes_per_second: float | None = None
    nvlink_bytes_per_second: float | None = None  # per direction
    pcie_generation: int | None = None
    pcie_lanes: int | None = None
    power_watts: float | None = None  # the default limit; the limit in force is the driver's to say
    memory_gigabytes: float | None = None  # as in the product's name, which MIG profiles divide; not exact bytes
    mig: MigLayout | None = None
    attainable: Mapping[str, float] = field(default_factory=dict)  # unit -> published best / peak, 0..1


class _Name(NamedTuple):
    words: tuple[str, ...]
    open: bool  # any words may follow


class PeakTable:
    """All known models."""

    def __init__(self, rows: Iterable[PeaksRow]) -> None:
        """Later rows win: of a row with a name that an earlier one has, the values given replace the earlier's."""
        by_name: dict[_Name, PeaksRow] = {}
        for row in rows:
            for name in map(_parse, row["names"]):
                by_name[name] = {**by_name.get(name, {}), **row}
        self._by_name = {name: _peaks(row) for name, row in by_name.items()}

    def find(self, model: str) -> Peaks | None:
        """The peaks for the driver's model name, also that of a MIG device; None for a model that is not known."""
        words = _words(re.sub(r" MIG .*", "", model))
        matches = [name for name in self._by_name if _matches(name, words)]
        return self._by_name[max(matches, key=lambda name: (len(name.words), not name.open))] if matches else None

    @property
    def models(self) -> tuple[Peaks, ...]:
        """Every row, for listings; a row with two names appears twice."""
        return tuple(self._by_name.values())


def load(added: object = None) -> PeakTable:
    """The shipped table and ``added``: rows of the same form, as read from YAML. ValueError says what is wrong."""
    shipped = Path(__file__).parents[1].joinpath("peaks.yaml").read_bytes()
    return PeakTable([*read_rows(strict_yaml.load(shipped), "peaks.yaml"), *read_rows(added, "the added peaks")])


def _words(name: str) -> tuple[str, ...]:
    return tuple(word for word in re.findall("[a-z0-9]+", name.casefold()) if word not in VENDOR_WORDS)


def _parse(name: str) -> _Name:
    return _Name(_words(name), name.rstrip().endswith("*"))


def _matches(name: _Name, words: tuple[str, ...]) -> bool:
    return words[: len(name.words)] == name.words if name.open else words == name.words


def _peaks(row: PeaksRow) -> Peaks:
    mig = row.get("mig")
    return Peaks(
        model=row.get("model", row["names"][0]),
        source=row.get("source", "configuration"),
        multiprocessors=row.get("multiprocessors"),
        reference_clock_hertz=row.get("reference_clock_hertz"),
        flops=row.get("flops", {}),
        dram_bytes_per_second=row.get("dram_bytes_per_second"),
        nvlink_bytes_per_second=row.get("nvlink_bytes_per_second"),
        pcie_generation=row.get("pcie_generation"),
        pcie_lanes=row.get("pcie_lanes"),
        power_watts=row.get("power_watts"),
        memory_gigabytes=row.get("memory_gigabytes"),
        mig=MigLayout(mig["compute_slices"], mig["memory_slices"], mig.get("multiprocessors", {})) if mig else None,
        attainable=row.get("attainable", {}),
    )
