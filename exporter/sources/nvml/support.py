"""Whether a GPU has GPM; where it has not, why, and what would give its numbers."""

from __future__ import annotations

import contextlib
from typing import Any, NamedTuple

from exporter.model import Absence
from exporter.sources.nvml.library import (
    FUNCTION_NOT_FOUND,
    INVALID_ARGUMENT,
    LOST,
    NO_PERMISSION,
    NOT_SUPPORTED,
    VERSION_MISMATCH,
    text,
)

VOLTA, HOPPER, BLACKWELL = 5, 9, 10  # nvml.h nvmlDeviceArchitecture_t
GEFORCE = frozenset({5, 15})  # nvml.h nvmlBrandType_t
PERMISSION_REMEDY = "load the driver with NVreg_RestrictProfilingToAdminUsers=0, or give the exporter CAP_SYS_ADMIN"
_DCGM = "run a DCGM hostengine and give its address with --dcgm.address"
_NOTHING = "nothing on this GPU: the driver's claim is all there is"
_UNABLE = frozenset({NOT_SUPPORTED, FUNCTION_NOT_FOUND, INVALID_ARGUMENT, VERSION_MISMATCH})


class Support(NamedTuple):
    """The driver's answer about one GPU. ``absence`` None: it has GPM."""

    absence: Absence | None
    why: str = ""
    remedy: str = ""


def ask(nvml: Any, handle: Any) -> Support:
    """Ask the driver. NVMLError when the GPU is lost; ``Absence.ERROR``: worth asking again."""
    try:
        if nvml.nvmlGpmQueryDeviceSupport(handle).isSupportedDevice:
            return Support(None)
        code, reason = NOT_SUPPORTED, ""
    except nvml.NVMLError as error:
        if error.value in LOST:
            raise
        code, reason = error.value, str(error)
    if code == NO_PERMISSION:
        return Support(Absence.NOT_PERMITTED, "the driver refuses GPM to this user", PERMISSION_REMEDY)
    if code not in _UNABLE:
        why = f"the driver does not say whether the GPU has GPM: {reason}"
        return Support(
            Absence.ERROR, why, "the exporter asks again once a second; nvidia-smi -q and dmesg may say more"
        )
    return Support(Absence.NOT_SUPPORTED, *_lacking(nvml, handle, code))


def _lacking(nvml: Any, handle: Any, code: int) -> tuple[str, str]:
    """Why there is none, and the remedy. The GPU's generation decides before the driver's: an update cannot help it."""
    model = architecture = brand = driver = None
    with contextlib.suppress(nvml.NVMLError):
        driver = text(nvml.nvmlSystemGetDriverVersion())
        model = text(nvml.nvmlDeviceGetName(handle))
        brand = nvml.nvmlDeviceGetBrand(handle)
        architecture = nvml.nvmlDeviceGetArchitecture(handle)
    model = model or "this GPU"
    if architecture is not None and architecture < VOLTA:
        return f"{model} has no profiling counters: they begin with Volta", _NOTHING
    if brand in GEFORCE and architecture is not None and architecture < BLACKWELL:
        return f"{model} has no profiling counters: GeForce has none before Blackwell", _NOTHING
    if architecture is not None and architecture < HOPPER:
        return f"{model} has no GPM: that begins with Hopper", _DCGM
    if code in (FUNCTION_NOT_FOUND, VERSION_MISMATCH):
        why = f"the driver {driver or ''} is too old for GPM: its library lacks the function or speaks an older form"
        return why.replace("  ", " "), "update the NVIDIA driver (525 or later has GPM)"
    return f"the driver says that {model} has no GPM", f"a guest of a vGPU has none; otherwise {_DCGM}"
