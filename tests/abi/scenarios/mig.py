"""MIG: the profiles of H100 and A100 boards, and GPU instances made from them."""

from collections.abc import Mapping
from dataclasses import replace

from ..nvml.scenario import MIB, Bar1, ComputeInstance, Gpu, GpuInstance, Layout, Memory, Mig, Profile, Value
from .models import GPM_IDS, uuid_of

H100_PROFILES = {
    "1g.10gb": Profile(0, 19, "1g.10gb", 1, 7, 16, 9984, 1, 1, 0, 1),
    "1g.20gb": Profile(9, 15, "1g.20gb", 1, 4, 26, 20096, 1, 1, 0, 1),
    "2g.20gb": Profile(1, 14, "2g.20gb", 2, 3, 32, 20096, 2, 2, 0, 2),
    "3g.40gb": Profile(2, 9, "3g.40gb", 3, 2, 60, 40448, 3, 3, 0, 3),
    "4g.40gb": Profile(3, 5, "4g.40gb", 4, 1, 64, 40448, 4, 4, 0, 4),
    "7g.80gb": Profile(4, 0, "7g.80gb", 7, 1, 132, 80896, 8, 7, 0, 7, 1),
}

A100_80GB_PROFILES = {
    "1g.10gb": Profile(0, 19, "1g.10gb", 1, 7, 14, 9728, 1),
    "1g.20gb": Profile(9, 15, "1g.20gb", 1, 4, 14, 19968, 1, 1),
    "2g.20gb": Profile(1, 14, "2g.20gb", 2, 3, 28, 19968, 2, 1),
    "3g.40gb": Profile(2, 9, "3g.40gb", 3, 2, 42, 40192, 3, 2),
    "4g.40gb": Profile(3, 5, "4g.40gb", 4, 1, 56, 40192, 4, 2),
    "7g.80gb": Profile(4, 0, "7g.80gb", 7, 1, 98, 80896, 7, 5, 0, 1, 1),
}

_NO_LINKS = (20, 21, 60, 61)
"""What GPM does not have for an instance: PCIe and NVLink belong to the board."""

INSTANCE_GPM_IDLE: Mapping[int, Value] = {metric: 0.0 for metric in GPM_IDS if metric not in _NO_LINKS}


def instance(
    gpu: Gpu,
    profile: Profile,
    id: int,
    *,
    key: str | None = None,
    used_mib: float = 9,
    start: int = 0,
    gpm: Mapping[int, Value] | None = None,
) -> GpuInstance:
    """A GPU instance with one compute instance that fills it."""
    board = int(gpu.uuid.split("-")[1], 16)
    generation = sum((key or "").encode())
    compute = ComputeInstance(
        id=0,
        uuid=uuid_of(board * 0x10000 + id * 0x400 + generation % 0x400, "MIG"),
        name=f"{gpu.name} MIG {profile.name}",
        sm_count=profile.sm_count,
        slices=profile.slices,
        memory=Memory(profile.memory_mib * MIB, used_mib * MIB),
        bar1=Bar1(profile.memory_mib * 0.61 // 1 * MIB),
        placement=(0, profile.slices),
    )
    has_gpm = gpu.gpm is not None
    return GpuInstance(
        key=key or f"gi{id}",
        id=id,
        profile=profile.id,
        slices=profile.slices,
        memory_mib=profile.memory_mib,
        computes=(compute,),
        placement=(start, profile.slices),
        copy_engines=profile.copy_engines,
        decoders=profile.decoders,
        encoders=profile.encoders,
        jpegs=profile.jpegs,
        ofas=profile.ofas,
        gpm=(gpm if gpm is not None else INSTANCE_GPM_IDLE) if has_gpm else {},
    )


def with_mig(
    gpu: Gpu,
    profiles: Mapping[str, Profile],
    instances: tuple[GpuInstance, ...],
    *layouts: Layout,
) -> Gpu:
    """In MIG mode with all instances from the start, unless layouts say otherwise."""
    from_start = (Layout(0.0, tuple(item.key for item in instances)),)
    return replace(gpu, mig=Mig(instances, layouts or from_start, profiles=tuple(profiles.values())))


def split(gpu: Gpu, profiles: Mapping[str, Profile], name: str, count: int, first_id: int) -> Gpu:
    """In equal instances."""
    profile = profiles[name]
    parts = (instance(gpu, profile, first_id + i, start=i * profile.slices) for i in range(count))
    return with_mig(gpu, profiles, tuple(parts))
