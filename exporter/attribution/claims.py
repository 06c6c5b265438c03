"""Who says to hold what, before it is a holding."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from exporter.attribution.holdings import Holding, Sharing, Workload
from exporter.model import Entity


@dataclass(frozen=True, slots=True)
class Claim:
    """One workload on one entity, as one file or process says."""

    entity: Entity
    workload: Workload
    mps: bool = False  # known to share by CUDA's Multi-Process Service
    labels: Mapping[str, str] = field(default_factory=dict)


def holdings(claims: Iterable[Claim]) -> tuple[Holding, ...]:
    """Every pair of entity and workload once, with how the entity is shared; in a stable order.

    Several holders of one GPU are time-sliced, unless one of them is known to use MPS.
    """
    holders: dict[Entity, dict[Workload, Claim]] = {}
    for claim in claims:
        holders.setdefault(claim.entity, {}).setdefault(claim.workload, claim)
    return tuple(
        Holding(entity, workload, _sharing(entity, each.values()), claim.labels)
        for entity, each in sorted(holders.items(), key=lambda item: str(item[0]))
        for workload, claim in sorted(each.items())
    )


def _sharing(entity: Entity, claims: Iterable[Claim]) -> Sharing:
    listed = list(claims)
    if entity.gpu_instance is not None:
        return Sharing.MIG
    if any(claim.mps for claim in listed):
        return Sharing.MPS
    return Sharing.TIME_SLICED if len(listed) > 1 else Sharing.EXCLUSIVE
