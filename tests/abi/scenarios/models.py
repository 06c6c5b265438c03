"""GPU models, idle: what their nvidia-smi reports say, with identifiers of our own."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ..nvml.codes import Architecture, Brand, Code
from ..nvml.scenario import (
    MIB,
    Bar1,
    Clocks,
    Ecc,
    FromPower,
    Gpu,
    Memory,
    Mig,
    NvLink,
    Pcie,
    Power,
    RemappedRows,
    RetiredPages,
    Value,
)

GPM_IDS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 20, 21, 60, 61)
GPM_IDLE: Mapping[int, Value] = dict.fromkeys(GPM_IDS, 0.0)

_NO_VIOLATIONS: Mapping[int, Value] = dict.fromkeys((0, 1, 2, 3, 4, 5, 10, 11), 0.0)


def uuid_of(number: int, prefix: str = "GPU") -> str:
    """Identifiers of our own: easy to tell apart, and no real board's."""
    return f"{prefix}-{number:08x}-0e57-4c0d-9a5e-{number:012x}"


@dataclass(frozen=True)
class Place:
    """Where a board sits, and what differs between boards of one model."""

    index: int
    pci_bus_id: str
    draw_mw: float | None = None
    temperature: float | None = None
    memory_temperature: float | None = None


def _placed(gpu: Gpu, place: Place) -> Gpu:
    power = gpu.power if place.draw_mw is None else replace(gpu.power, draw_mw=place.draw_mw)
    if power.average_mw is not None and place.draw_mw is not None:
        power = replace(power, average_mw=place.draw_mw)
    return replace(
        gpu,
        power=power,
        temperature=gpu.temperature if place.temperature is None else place.temperature,
        memory_temperature=gpu.memory_temperature if place.memory_temperature is None else place.memory_temperature,
    )


def h100_sxm(place: Place = Place(0, "00000000:53:00.0")) -> Gpu:
    return _placed(
        Gpu(
            key=f"gpu{place.index}",
            uuid=uuid_of(0x1000 + place.index),
            name="NVIDIA H100 80GB HBM3",
            pci_bus_id=place.pci_bus_id,
            minor=place.index,
            architecture=Architecture.HOPPER,
            compute_capability=(9, 0),
            cores=132 * 128,
            serial=f"16000000010{place.index:02d}",
            vbios="96.00.99.00.01",
            pci_device_id=0x233010DE,
            pci_subsystem_id=0x16C110DE,
            module_id=place.index + 1,
            power=Power(68_570, 700_000, 200_000, 700_000, average_mw=68_570),
            clocks=Clocks(345, 345, 2619, 765),
            clocks_max=Clocks(1980, 1980, 2619, 1545),
            memory=Memory(81559 * MIB, 0, 480 * MIB),
            bar1=Bar1(131072 * MIB, 1 * MIB),
            pcie=Pcie(5, 5, 16, 16, transmit_kib=502, receive_kib=578, replays=150),
            nvlink=NvLink(18, version=4, speed_mbps=26_562),
            ecc=Ecc(),
            remapped_rows=RemappedRows(banks=(2560, 0, 0, 0, 0)),
            temperature=29,
            memory_temperature=37,
            violations_ns=_NO_VIOLATIONS,
            energy_mj=FromPower(15_152_422_938.0),
            fields={269: 0.0, 270: 0.0, 271: 0.0},
            gpm=GPM_IDLE,
            mig=Mig(),
        ),
        place,
    )


def h200_sxm(place: Place = Place(0, "00000000:53:00.0")) -> Gpu:
    """As the H100 it is made from, with its own memory."""
    return replace(
        h100_sxm(place),
        uuid=uuid_of(0x1100 + place.index),
        name="NVIDIA H200",
        pci_device_id=0x233510DE,
        clocks=Clocks(345, 345, 3201, 765),
        clocks_max=Clocks(1980, 1980, 3201, 1545),
        memory=Memory(143771 * MIB, 0, 601 * MIB),
        bar1=Bar1(262144 * MIB, 1 * MIB),
    )


def b200(place: Place = Place(0, "00000000:8F:00.0")) -> Gpu:
    return _placed(
        Gpu(
            key=f"gpu{place.index}",
            uuid=uuid_of(0x2000 + place.index),
            name="NVIDIA B200",
            pci_bus_id=place.pci_bus_id,
            minor=place.index,
            architecture=Architecture.BLACKWELL,
            compute_capability=(10, 0),
            cores=148 * 128,
            serial=f"16000000020{place.index:02d}",
            vbios="97.00.FA.00.09",
            pci_device_id=0x290110DE,
            pci_subsystem_id=0x199910DE,
            module_id=place.index + 1,
            power=Power(195_680, 1_000_000, 200_000, 1_000_000, average_mw=195_680),
            clocks=Clocks(120, 120, 3996, 600),
            clocks_max=Clocks(1965, 1965, 3996, 1965),
            memory=Memory(183359 * MIB, 0, 728 * MIB),
            bar1=Bar1(262144 * MIB, 1 * MIB),
            pcie=Pcie(5, 5, 16, 16, transmit_kib=0, receive_kib=0),
            nvlink=NvLink(18, version=5, speed_mbps=53_125),
            ecc=Ecc(),
            remapped_rows=RemappedRows(banks=(6144, 0, 0, 0, 0)),
            persistence_mode=0,
            temperature=39,
            memory_temperature=39,
            violations_ns=_NO_VIOLATIONS,
            fields={269: 0.0, 270: 0.0, 271: 0.0},
            gpm=GPM_IDLE,
            mig=Mig(),
        ),
        place,
    )


def a100_sxm_80gb(place: Place = Place(0, "00000000:01:00.0")) -> Gpu:
    """No GPM before Hopper: NVML has the claim only."""
    return _placed(
        Gpu(
            key=f"gpu{place.index}",
            uuid=uuid_of(0x3000 + place.index),
            name="NVIDIA A100-SXM4-80GB",
            pci_bus_id=place.pci_bus_id,
            minor=place.index,
            architecture=Architecture.AMPERE,
            compute_capability=(8, 0),
            cores=108 * 64,
            serial=f"15000000030{place.index:02d}",
            pci_device_id=0x20B210DE,
            pci_subsystem_id=0x147F10DE,
            power=Power(67_030, 500_000, 100_000, 500_000),
            clocks=Clocks(1275, 1275, 1593, 1275),
            clocks_max=Clocks(1410, 1410, 1593, 1290),
            memory=Memory(81920 * MIB, 50 * MIB, 869 * MIB),
            bar1=Bar1(131072 * MIB, 1 * MIB),
            pcie=Pcie(4, 4, 16, 16, transmit_kib=4000, receive_kib=0),
            nvlink=NvLink(12, version=3, speed_mbps=25_000),
            ecc=Ecc(),
            remapped_rows=RemappedRows(),
            persistence_mode=0,
            clock_reasons=0,
            temperature=27,
            memory_temperature=44,
            violations_ns=_NO_VIOLATIONS,
            mig=Mig(),
        ),
        place,
    )


def v100_sxm_16gb(place: Place = Place(0, "00000000:15:00.0")) -> Gpu:
    return _placed(
        Gpu(
            key=f"gpu{place.index}",
            uuid=uuid_of(0x4000 + place.index),
            name="Tesla V100-SXM2-16GB",
            brand=Brand.TESLA,
            pci_bus_id=place.pci_bus_id,
            minor=place.index,
            architecture=Architecture.VOLTA,
            compute_capability=(7, 0),
            cores=80 * 64,
            serial=f"03000000040{place.index:02d}",
            pci_device_id=0x1DB110DE,
            power=Power(43_000, 300_000, 150_000, 300_000),
            clocks=Clocks(135, 135, 877, 555),
            clocks_max=Clocks(1530, 1530, 877, 1372),
            memory=Memory(16384 * MIB, 0, 224 * MIB),
            bar1=Bar1(16384 * MIB, 2 * MIB),
            pcie=Pcie(3, 3, 16, 16, transmit_kib=0, receive_kib=0),
            nvlink=NvLink(6, version=2, speed_mbps=25_781),
            ecc=Ecc(),
            retired_pages=RetiredPages(),
            temperature=34,
            memory_temperature=32,
            violations_ns=_NO_VIOLATIONS,
        ),
        place,
    )


def t4(place: Place = Place(0, "00000000:00:1E.0")) -> Gpu:
    """No memory temperature, and in a slot that gives it half of its lanes."""
    return _placed(
        Gpu(
            key=f"gpu{place.index}",
            uuid=uuid_of(0x5000 + place.index),
            name="Tesla T4",
            brand=Brand.TESLA,
            pci_bus_id=place.pci_bus_id,
            minor=place.index,
            architecture=Architecture.TURING,
            compute_capability=(7, 5),
            cores=40 * 64,
            serial=f"15000000050{place.index:02d}",
            vbios="90.04.96.00.02",
            pci_device_id=0x1EB810DE,
            pci_subsystem_id=0x12A210DE,
            power=Power(33_510, 70_000, 60_000, 70_000),
            clocks=Clocks(1590, 1590, 5000, 1470),
            clocks_max=Clocks(1590, 1590, 5001, 1470),
            memory=Memory(15360 * MIB, 0, 448 * MIB),
            bar1=Bar1(256 * MIB, 2 * MIB),
            pcie=Pcie(3, 3, 8, 16, transmit_kib=0, receive_kib=0),
            ecc=Ecc(),
            retired_pages=RetiredPages(),
            temperature=33,
            violations_ns=_NO_VIOLATIONS,
        ),
        place,
    )


def l4(place: Place = Place(0, "00000000:00:03.0")) -> Gpu:
    return _placed(
        Gpu(
            key=f"gpu{place.index}",
            uuid=uuid_of(0x6000 + place.index),
            name="NVIDIA L4",
            pci_bus_id=place.pci_bus_id,
            minor=place.index,
            architecture=Architecture.ADA,
            compute_capability=(8, 9),
            cores=58 * 128,
            serial=f"16000000060{place.index:02d}",
            pci_device_id=0x27B810DE,
            power=Power(16_500, 72_000, 40_000, 72_000, average_mw=16_500),
            clocks=Clocks(210, 210, 405, 765),
            clocks_max=Clocks(2040, 2040, 6251, 1770),
            memory=Memory(23034 * MIB, 0, 465 * MIB),
            bar1=Bar1(32768 * MIB, 1 * MIB),
            pcie=Pcie(1, 4, 16, 16, transmit_kib=0, receive_kib=0),
            ecc=Ecc(),
            remapped_rows=RemappedRows(banks=(96, 0, 0, 0, 0)),
            performance_state=8,
            temperature=38,
            violations_ns=_NO_VIOLATIONS,
        ),
        place,
    )


def p100_pcie(place: Place = Place(0, "00000000:00:04.0")) -> Gpu:
    """No energy counter, and fewer policies than Volta: those fields are not supported."""
    return _placed(
        Gpu(
            key=f"gpu{place.index}",
            uuid=uuid_of(0x7000 + place.index),
            name="Tesla P100-PCIE-16GB",
            brand=Brand.TESLA,
            pci_bus_id=place.pci_bus_id,
            minor=place.index,
            architecture=Architecture.PASCAL,
            compute_capability=(6, 0),
            cores=56 * 64,
            serial=f"03000000070{place.index:02d}",
            pci_device_id=0x15F810DE,
            power=Power(27_000, 250_000, 125_000, 250_000),
            clocks=Clocks(405, 405, 715, 835),
            clocks_max=Clocks(1328, 1328, 715, 1189),
            memory=Memory(16384 * MIB, 0, 110 * MIB),
            bar1=Bar1(16384 * MIB, 2 * MIB),
            pcie=Pcie(3, 3, 16, 16, transmit_kib=0, receive_kib=0),
            ecc=Ecc(),
            retired_pages=RetiredPages(),
            energy_mj=None,
            temperature=36,
            memory_temperature=None,
            violations_ns={0: 0.0, 1: 0.0, 2: 0.0},
            process_utilization=True,
        ),
        place,
    )


def rtx_4090(place: Place = Place(0, "00000000:01:00.0")) -> Gpu:
    """A GeForce: no serial, no ECC, no GPM, no NVLink; the idle link goes down to the first generation."""
    return _placed(
        Gpu(
            key=f"gpu{place.index}",
            uuid=uuid_of(0x8000 + place.index),
            name="NVIDIA GeForce RTX 4090",
            brand=Brand.GEFORCE,
            pci_bus_id=place.pci_bus_id,
            minor=place.index,
            architecture=Architecture.ADA,
            compute_capability=(8, 9),
            cores=128 * 128,
            pci_device_id=0x268410DE,
            power=Power(21_000, 450_000, 150_000, 600_000, average_mw=21_000),
            clocks=Clocks(210, 210, 405, 1185),
            clocks_max=Clocks(3105, 3105, 10501, 2415),
            memory=Memory(24564 * MIB, 12 * MIB, 382 * MIB),
            bar1=Bar1(32768 * MIB, 27 * MIB),
            pcie=Pcie(1, 4, 16, 16, transmit_kib=0, receive_kib=0),
            performance_state=8,
            fan_speed=0,
            temperature=34,
            persistence_mode=0,
            violations_ns={0: Code.NOT_SUPPORTED, 1: Code.NOT_SUPPORTED},
        ),
        place,
    )
