"""Which profiling fields a GPU offers, and which of them it can measure in one pass.

dcgmProfGetSupportedMetricGroups: groups of different major ids run together; those of one major id share hardware.
Hopper and newer list everything, whether the GPU has it or not: a list of capabilities, not a promise of data.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from exporter.sources.dcgm.session import Session


class Offer(NamedTuple):
    """One metric group."""

    major: int
    minor: int
    fields: frozenset[int]


def offers_of(session: Session, gpu: int) -> tuple[Offer, ...]:
    """The metric groups of this GPU, not of any other (field case 27). Raises CallFailed."""
    answer = session.call("dcgmProfGetSupportedMetricGroups", gpu)
    groups = answer.metricGroups[: answer.numMetricGroups]
    return tuple(Offer(g.majorId, g.minorId, frozenset(g.fieldIds[: g.numFieldIds])) for g in groups)


def offered(offers: Sequence[Offer], wanted: Sequence[int]) -> tuple[int, ...]:
    """The wanted fields that there are, in the order of ``wanted``."""
    every = frozenset[int]().union(*(offer.fields for offer in offers))
    return tuple(field for field in wanted if field in every)


def one_pass(offers: Sequence[Offer], wanted: Sequence[int]) -> tuple[int, ...]:
    """The wanted fields that fit together: of each major id, the group with the field that is wanted most."""
    best: dict[int, Offer] = {}
    for offer in sorted(offers, key=lambda offer: _rank(offer, wanted)):
        best.setdefault(offer.major, offer)
    return offered(tuple(best.values()), wanted)


def _rank(offer: Offer, wanted: Sequence[int]) -> int:
    return min((place for place, field in enumerate(wanted) if field in offer.fields), default=len(wanted))
