"""Is DCGM's own library here?"""

from __future__ import annotations

import ctypes

from exporter.model import SourceError
from exporter.sources.dcgm.bindings import LIBRARIES


def require() -> str:
    """The name under which it loads. SourceError when it does not."""
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
