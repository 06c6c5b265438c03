"""Zeros of the links that another counter of the same GPU contradicts (field cases 25, 26).

Profiling's byte rates have been reported at exactly 0 for ever, on GPUs that moved gigabytes. Two others count too: the
totals of PCIe bytes (native.py), and the driver's own NVLink counters, which DCGM gives as field 449. Their units are
not known well enough to take them in place of the rates, but something that moves is not 0.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from exporter.fields import INT32_BLANK
from exporter.model import Absence, Reading
from exporter.sources.dcgm.values import NVLINK_THROUGHPUT, Row, blank_of

DENIALS = 5  # times in a row that the other moved while the rate was exactly 0
MOVED = 10  # of field 449, roughly MB/s: above what GPM, which counts in MiB/s, may round to 0
_NVLINK = frozenset({"nvlink_transmit", "nvlink_receive"})


class Witness:
    """One other counter. Once it has denied the zeros, only a value other than 0 acquits."""

    def __init__(self) -> None:
        self._denials = 0

    @property
    def denies(self) -> bool:
        """Whether zeros are false."""
        return self._denials >= DENIALS

    def hear(self, values: Collection[float], moved: bool) -> None:
        """``values``: the rates over a stretch of time; ``moved``: whether the other counter did, over the same."""
        if any(values):
            self._denials = 0
        elif values and not self.denies:
            self._denials = self._denials + 1 if moved else 0


class NvlinkWitness:
    """Field 449 against the rates of NVLink, of one GPU. It may be sampled less often than they are."""

    def __init__(self) -> None:
        self._witness = Witness()
        self._moved: bool | None = None  # None: no new sample of 449

    def hear(self, rows: Iterable[Row]) -> None:
        """The rows of the context, among which 449 is."""
        for row in rows:
            if row.field == NVLINK_THROUGHPUT and row.status == 0 and row.value is not None:
                self._moved = blank_of(row.field, row.value) is None and MOVED <= row.value < INT32_BLANK

    def judge(self, readings: list[Reading]) -> list[Reading]:
        """The readings of one read, false zeros among them without their value. Each sample of 449 counts once; rates
        other than 0 between two of them acquit."""
        values = [reading.value for reading in readings if reading.field in _NVLINK and reading.value is not None]
        if values and (self._moved is not None or any(values)):
            self._witness.hear(values, self._moved is True)
            self._moved = None
        if not self._witness.denies:
            return readings
        return [contradicted(reading) if reading.field in _NVLINK else reading for reading in readings]


def contradicted(reading: Reading) -> Reading:
    """The reading of a false zero, without it."""
    return reading._replace(value=None, start=None, absence=Absence.CONTRADICTED)
