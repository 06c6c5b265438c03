"""From the labels of a sample to its entity and the static facts about it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from exporter.model import Entity

# spellings over the releases of dcgm-exporter; the first that is there and not empty counts
_UUID = ("UUID", "uuid", "Uuid", "gpu_uuid")
_MODEL = ("modelName", "model_name")
_DRIVER = ("DCGM_FI_DRIVER_VERSION", "DCGM_FI_SYSTEM_DRIVER_VERSION")  # the latter from 4.9 on
_ELSEWHERE = ("nvlink", "nvswitch", "cpu", "cpucore")  # rows about parts of a GPU, or of no GPU at all
_PREFIXES = ("DCGM_FI_", "DCGM_EXP_")


class GpuLabels(NamedTuple):
    """The GPU or GPU instance of one sample, and the facts in its labels. ``gpu``: DCGM's index, for people."""

    entity: Entity
    gpu: str = ""
    model: str = ""
    pci_bus_id: str = ""
    driver_version: str = ""
    mig_profile: str = ""

    def merged(self, other: GpuLabels) -> GpuLabels:
        """These labels, completed from the other's."""
        return GpuLabels(self.entity, *(mine or theirs for mine, theirs in zip(self[1:], other[1:], strict=True)))


def is_gpu_family(name: str) -> bool:
    """True for names of dcgm-exporter's families."""
    return name.startswith(_PREFIXES)


def is_elsewhere(labels: Mapping[str, str]) -> bool:
    """True for a row about a link, a switch or a CPU, even if it names a GPU too."""
    return any(labels.get(name) for name in _ELSEWHERE)


def row(labels: Mapping[str, str]) -> GpuLabels | None:
    """None when the labels name no GPU by its UUID.

    Time-slicing appends the replica to the UUID (``GPU-...::3``, field case 46): it is the same GPU.
    """
    uuid = _first(labels, _UUID).partition("::")[0]
    if not uuid:
        return None
    instance = labels.get("GPU_I_ID", "")
    if instance and not (instance.isascii() and instance.isdecimal() and len(instance) <= 9):
        return None
    return GpuLabels(
        Entity(uuid, int(instance) if instance else None),
        gpu=labels.get("gpu", ""),
        model=_first(labels, _MODEL),
        pci_bus_id=labels.get("pci_bus_id", ""),
        driver_version=_first(labels, _DRIVER),
        mig_profile=labels.get("GPU_I_PROFILE", ""),
    )


def _first(labels: Mapping[str, str], names: tuple[str, ...]) -> str:
    return next((labels[name] for name in names if labels.get(name)), "")
