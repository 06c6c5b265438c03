"""Zeros that are hard to believe: PCIe silent in both directions while kernels run (field case 25).

A GPU gets its commands over PCIe, and answers over it: minutes of exactly no byte beside active SMs are hard to
believe. It is no proof, so that the value stays and is only marked: a kernel may run that long by itself, and GPM
counts in MiB/s, so that less than that may read as 0. NVLink at zero says nothing: most jobs do not use it
(field case 26).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

ACTIVE = 0.05  # SM active above which kernels run for sure
PATIENCE = 300.0  # seconds of such windows, one after the other
GAP = 60.0  # seconds; a longer gap between windows adds nothing
_PCIE = ("pcie_transmit", "pcie_receive")
_BESIDE_ITS_CPU = re.compile(r"\bG[BH]\d")  # GH200, GB200: NVLink-C2C carries what PCIe does elsewhere


class ZeroWatch:
    """Of one entity, fed once a batch."""

    def __init__(self) -> None:
        self.suspects: frozenset[str] = frozenset()
        self._seconds = 0.0
        self._last: float | None = None

    def feed(self, end: float, means: Mapping[str, float], model: str) -> None:
        """The means of the window that ends at ``end``. Idle windows neither add nor acquit: an idle link is 0."""
        values = [means[field] for field in _PCIE if field in means]
        if not values:
            return
        if any(values) or _BESIDE_ITS_CPU.search(model):
            self._seconds, self.suspects = 0.0, frozenset()
        elif len(values) == len(_PCIE) and means.get("sm", 0.0) > ACTIVE and self._last is not None:
            self._seconds += min(end - self._last, GAP)
            if self._seconds >= PATIENCE:
                self.suspects = frozenset(_PCIE)
        self._last = end
