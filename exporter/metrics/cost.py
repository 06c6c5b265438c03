"""Cost: the configured price per device. Nothing is computed from it here: cost is calculated in PromQL."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from exporter.core.snapshot import Snapshot
from exporter.metrics.family import DEVICE, Family, Group, Sample, Type, device_labels, join, labels

PRICE = Family(
    "price_per_hour",
    Type.GAUGE,
    "",
    "Configured price of one hour of the device; absent where none is configured. Instances carry their board's price.",
    labels=(*DEVICE, "currency"),
)


@dataclass(frozen=True, slots=True)
class Price:
    """``model``: a pattern over model names, * for all."""

    model: str
    per_hour: float


def cost_group(prices: Sequence[Price], currency: str) -> Group:
    """The first price whose pattern matches a device's model."""

    def collect(snapshot: Snapshot) -> Iterator[Sample]:
        for view in snapshot.entities:
            price = next((p for p in prices if fnmatchcase(view.device.model, p.model)), None)
            if price is not None and view.present:
                yield Sample(PRICE, join(device_labels(view), labels(currency=currency)), price.per_hour)

    return Group("Cost", (PRICE,), collect)
