"""What GPUs offer to profile: by GPM, by the module, or nothing."""

from dataclasses import dataclass

from .codes import Code


@dataclass(frozen=True)
class MetricGroup:
    major: int
    minor: int
    fields: tuple[int, ...]
    withheld: bool = False
    """Listed, but a watch does not get its fields; of the module only."""


@dataclass(frozen=True)
class Gpm:
    """Hopper and newer: everything at once, and the first sample of a watch is blank."""

    groups: tuple[MetricGroup, ...] | None = None
    """None: what the hostengine's version lists."""


GPM = Gpm()


@dataclass(frozen=True)
class Module:
    """Volta to Ada: by the profiling module; groups of one major and different minors share hardware."""

    groups: tuple[MetricGroup, ...]
    combination: Code | None = Code.PROFILING_MULTI_PASS
    """What a watch gets that needs two such groups at once; None: they are multiplexed."""
    field: Code = Code.PROFILING_NOT_SUPPORTED
    """What a watch gets that names a field of no group."""
    refusal: Code | None = None
    """What everything about profiling gets: not permitted, say."""


@dataclass(frozen=True)
class NoProfiling:
    refusal: Code | None = None
    """None: as a hostengine says it, by whether the module is loaded."""


Profiling = Gpm | Module | NoProfiling

A10_GROUPS = (
    MetricGroup(0, 1, (1002, 1003, 1004, 1007)),
    MetricGroup(0, 3, (1008,)),
    MetricGroup(1, 0, (1005,)),
    MetricGroup(2, 0, (1009, 1010)),
    MetricGroup(3, 0, (1001,)),
    MetricGroup(4, 0, (1011, 1012)),
)
A100_GROUPS = (
    MetricGroup(0, 1, (1002, 1003, 1004, 1007)),
    MetricGroup(0, 2, (1006,)),
    MetricGroup(0, 3, (1008,)),
    *A10_GROUPS[2:],
)


def gpm_groups(version: tuple[int, int, int]) -> tuple[MetricGroup, ...]:
    """A list of what could be asked for, the same for every GPU: no promise that a field has data."""
    native = version >= (4, 6, 0)
    links = (*range(1040, 1084), *((1532, 1533) if native else ()))
    counters = (MetricGroup(2, 0, tuple(range(1084, 1097))),) if native else ()
    return (MetricGroup(0, 0, tuple(range(1001, 1035))), MetricGroup(1, 0, links), *counters)
