"""Whole machines, idle: the nodes behind the captures of nvidia-smi, and mixed ones."""

from dataclasses import replace

from ..nvml.scenario import Clocks, Gpu, Power, Scenario
from .mig import A100_80GB_PROFILES, H100_PROFILES, instance, split, with_mig
from .models import Place, a100_sxm_80gb, b200, h100_sxm, l4, p100_pcie, rtx_4090, t4, v100_sxm_16gb

H100_PLACES = (
    Place(0, "00000000:53:00.0", 68_570, 29, 37),
    Place(1, "00000000:64:00.0", 67_010, 30, 39),
    Place(2, "00000000:75:00.0", 67_450, 29, 38),
    Place(3, "00000000:86:00.0", 71_370, 32, 39),
    Place(4, "00000000:97:00.0", 66_660, 32, 37),
    Place(5, "00000000:A8:00.0", 68_110, 29, 37),
    Place(6, "00000000:B9:00.0", 69_800, 31, 37),
    Place(7, "00000000:CA:00.0", 68_070, 29, 38),
)

B200_PLACES = (
    Place(0, "00000000:8F:00.0", 195_680, 39, 39),
    Place(1, "00000000:90:00.0", 206_000, 53, 51),
    Place(2, "00000000:96:00.0", 194_610, 38, 38),
    Place(3, "00000000:97:00.0", 204_120, 52, 51),
    Place(4, "00000000:C4:00.0", 194_320, 38, 37),
    Place(5, "00000000:C5:00.0", 202_140, 51, 50),
    Place(6, "00000000:CB:00.0", 194_550, 37, 37),
    Place(7, "00000000:CC:00.0", 205_210, 51, 49),
)


def h100_node(count: int = 8) -> Scenario:
    return Scenario(tuple(h100_sxm(place) for place in H100_PLACES[:count]))


def b200_node(count: int = 8) -> Scenario:
    return Scenario(tuple(b200(place) for place in B200_PLACES[:count]))


def h100_mig_gpu(index: int = 0) -> Gpu:
    """One 3g.40gb, one 2g.20gb and two 1g.10gb."""
    board = replace(
        h100_sxm(Place(index, "00000000:00:09.0", 98_000, 42)),
        power=Power(98_000, 700_000, 200_000, 700_000, average_mw=98_000),
        clocks=Clocks(1980, 1980, 2619, 1545),
    )
    profiles = H100_PROFILES
    instances = (
        instance(board, profiles["3g.40gb"], 2, used_mib=26, start=0),
        instance(board, profiles["2g.20gb"], 3, used_mib=17, start=4),
        instance(board, profiles["1g.10gb"], 9, start=6),
        instance(board, profiles["1g.10gb"], 10, start=7),
    )
    return with_mig(board, profiles, instances)


def h100_mig_node() -> Scenario:
    return Scenario((h100_mig_gpu(),), driver_version="590.48.01", nvml_version="13.590.48.01", cuda_version=13010)


def h100_56_instances() -> Scenario:
    """Eight boards in seven instances each."""
    node = h100_node()
    return replace(node, gpus=tuple(split(gpu, H100_PROFILES, "1g.10gb", 7, 7) for gpu in node.gpus))


def a100_mig_node() -> Scenario:
    """Four instances of 1g.20gb; no GPM, so that instances have no measurement from NVML, and no claim either."""
    board = a100_sxm_80gb(Place(0, "00000000:01:00.0"))
    board = split(replace(board, minor=1), A100_80GB_PROFILES, "1g.20gb", 4, 3)
    return Scenario((board,), driver_version="535.54.03", nvml_version="12.535.54.03", cuda_version=12020)


def t4_node() -> Scenario:
    return Scenario((t4(),), driver_version="595.91.07", nvml_version="13.595.91.07", cuda_version=13020)


def v100_node(count: int = 8) -> Scenario:
    places = (Place(i, f"00000000:{0x15 + i:02X}:00.0") for i in range(count))
    return Scenario(
        tuple(v100_sxm_16gb(place) for place in places),
        driver_version="535.54.03",
        nvml_version="12.535.54.03",
        cuda_version=12020,
    )


def l4_node() -> Scenario:
    return Scenario((l4(),))


def p100_node() -> Scenario:
    return Scenario((p100_pcie(),), driver_version="535.54.03", nvml_version="12.535.54.03", cuda_version=12020)


def geforce_node() -> Scenario:
    return Scenario((rtx_4090(),))


def mixed_node() -> Scenario:
    """Of every kind: GPM, GPM on instances, none, and a GeForce."""
    return Scenario(
        (
            h100_sxm(Place(0, "00000000:53:00.0")),
            h100_mig_gpu(1),
            a100_sxm_80gb(Place(2, "00000000:07:00.0")),
            t4(Place(3, "00000000:00:1E.0")),
            rtx_4090(Place(4, "00000000:0A:00.0")),
        )
    )
