"""Checks that DCGM's own library is installed."""

from __future__ import annotations

import ctypes

from exporter.model import SourceError
from exporter.sources.dcgm.bindings import LIBRARIES


def require() -> str:
    """The name of the library that loads. SourceError if none does."""
    reasons = []
    for name in LIBRARIES:
        try:
            ctypes.CDLL(name)
        except OSError as error:
            reasons.append(str(error))
        else:
            return name
    raise SourceError(
        f"DCGM's library is not installed ({reasons[0]})",
        "apt-get install datacenter-gpu-manager-4-core, or a hostengine",
    )
