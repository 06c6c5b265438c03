"""The problems of a GPU that cannot be read or measured: what, why, and the remedy."""

from __future__ import annotations

from typing import Any

from exporter.model import Entity, Problem
from exporter.sources.nvml.library import FUNCTION_NOT_FOUND, LOST, NO_PERMISSION
from exporter.sources.nvml.support import PERMISSION_REMEDY, Support


def hung(index: int, uuid: str, seconds: float) -> Problem:
    """A call into the driver has not come back."""
    which = _which(index, uuid)
    return Problem(
        f"GPU {which} does not answer",
        f"a call into the driver has not returned after {seconds:g} s; the GPU is left out until it does",
        f"dmesg | grep -i xid; nvidia-smi --gpu-reset -i {uuid or index}, or reboot",
        _entity(uuid),
    )


def unreadable(index: int, uuid: str, error: Any) -> Problem:
    """The driver answers with an error about the GPU as a whole. ``error``: an NVMLError."""
    which = _which(index, uuid)
    if error.value in LOST:
        why = f"it has fallen off the bus or needs a reset: {error}"
        remedy = f"dmesg | grep -i xid (79: off the bus); nvidia-smi --gpu-reset -i {uuid or index}, or reboot"
    elif error.value == NO_PERMISSION:
        why = "the driver refuses it to this user"
        remedy = (
            f"check the rights of /dev/nvidia{index} and the container's device list (NVIDIA_VISIBLE_DEVICES, cgroup)"
        )
    elif error.value == FUNCTION_NOT_FOUND:
        why, remedy = f"the driver is too old: {error}", "update the NVIDIA driver"
    else:
        why, remedy = str(error), "nvidia-smi -q; dmesg"
    return Problem(f"GPU {which} cannot be read", why, remedy, _entity(uuid))


def unexpected(index: int, uuid: str, error: BaseException) -> Problem:
    """An error of the exporter itself."""
    why = f"{type(error).__name__}: {error}"
    return Problem(f"GPU {_which(index, uuid)} cannot be read", why, "report this with the log's trace", _entity(uuid))


def unlisted(uuid: str) -> Problem:
    """A GPU that was read before is not among those that the driver lists."""
    return Problem(
        f"GPU {uuid} is gone",
        "the driver no longer lists it: it fell off the bus, or was unbound or removed",
        "dmesg | grep -i xid; lspci -d 10de:; restart the exporter if it was removed on purpose",
        Entity(uuid),
    )


def unmeasured(entity: Entity, support: Support) -> Problem:
    """No GPM on this GPU."""
    return Problem("no profiling data from the driver", support.why, support.remedy, entity)


def not_permitted(entity: Entity) -> Problem:
    """GPM is there, and refused."""
    return Problem("no profiling data", "the driver refuses GPM to this user", PERMISSION_REMEDY, entity)


def _which(index: int, uuid: str) -> str:
    return uuid or f"number {index}"


def _entity(uuid: str) -> Entity | None:
    return Entity(uuid) if uuid else None
