"""What a metric family is, and how its labels are written."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from exporter.core.snapshot import EntityView, Snapshot

NAMESPACE = "honest_gpu_"
LONGEST_LABEL = 1024  # characters; names of pods have 253 at most, of jobs' users and accounts 128


class Type(enum.Enum):
    """Types as written on a TYPE line. State sets are gauges: OpenMetrics' stateset fixes another label name."""

    GAUGE = "gauge"
    COUNTER = "counter"
    HISTOGRAM = "histogram"
    INFO = "info"


class Profile(enum.IntEnum):
    """The smallest ``--metrics.profile`` that includes a family."""

    MINIMAL = 0
    DEFAULT = 1
    FULL = 2


DEVICE = ("gpu", "uuid", "gpu_instance")  # gpu_instance on MIG instances only


@dataclass(frozen=True, slots=True, eq=False)
class Family:
    """One family, compared by identity. ``name``: without namespace and the type's suffix (_total, _info, _bucket)."""

    name: str
    type: Type
    unit: str
    help: str
    labels: tuple[str, ...] = DEVICE
    profile: Profile = Profile.DEFAULT
    namespace: str = NAMESPACE

    @property
    def full_name(self) -> str:
        """The OpenMetrics family name."""
        return self.namespace + self.name

    @property
    def series_name(self) -> str:
        """The name that queries use."""
        suffix = {Type.COUNTER: "_total", Type.INFO: "_info"}.get(self.type, "")
        return self.full_name + suffix


class Sample(NamedTuple):
    """One sample: ``labels`` is the text between the braces, '' for none; ``suffix`` of histograms only."""

    family: Family
    labels: str
    value: float
    suffix: str = ""


Collector = Callable[[Snapshot], Iterable[Sample]]


class Group(NamedTuple):
    """Families that one function fills."""

    title: str
    families: tuple[Family, ...]
    collect: Collector


def escape(value: str) -> str:
    """A label value as exposition formats want it; one longer than LONGEST_LABEL is cut, and ends with an ellipsis."""
    if len(value) > LONGEST_LABEL:
        value = f"{value[: LONGEST_LABEL - 1]}…"
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


@lru_cache(maxsize=16384)  # the same few labels come again with each Snapshot
def labels(**values: str) -> str:
    """Label text from name=value, empty values left out (in Prometheus an empty label is an absent one)."""
    return ",".join(f'{name}="{escape(value)}"' for name, value in values.items() if value)


def join(left: str, right: str) -> str:
    """Two label texts as one."""
    return f"{left},{right}" if left and right else left or right


def device_labels(view: EntityView) -> str:
    """Identity and nothing else: ``gpu``, ``uuid``, on MIG ``gpu_instance`` (docs/architecture.md, invariant 5)."""
    instance = view.device.entity.gpu_instance
    return labels(
        gpu=view.device.index, uuid=view.device.entity.uuid, gpu_instance="" if instance is None else str(instance)
    )
