"""The labels of device series: identity and nothing else (docs/architecture.md, invariant 5)."""

from __future__ import annotations

from exporter.core.snapshot import EntityView
from exporter.metrics.family import labels


def device_labels(view: EntityView) -> str:
    """``gpu``, ``uuid``, and ``gpu_instance`` on MIG instances."""
    instance = view.device.entity.gpu_instance
    return labels(
        gpu=view.device.index, uuid=view.device.entity.uuid, gpu_instance="" if instance is None else str(instance)
    )
