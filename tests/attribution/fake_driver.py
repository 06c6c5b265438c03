"""A made-up /proc/driver/nvidia, as the driver writes it."""

from __future__ import annotations

from pathlib import Path

INFORMATION = """\
Model: \t\t NVIDIA H100 80GB HBM3
IRQ:   \t\t 18
GPU UUID: \t {uuid}
Video BIOS: \t 96.00.89.00.01
Bus Type: \t PCIe
DMA Size: \t 52 bits
DMA Mask: \t 0xfffffffffffff
Bus Location: \t {address}
Device Minor: \t {minor}
GPU Firmware: \t 535.161.08
GPU Excluded:\t {excluded}
"""


def add_gpu(root: Path, address: str, uuid: str, minor: int, excluded: str = "No") -> None:
    folder = root / "proc/driver/nvidia/gpus" / address
    folder.mkdir(parents=True)
    text = INFORMATION.format(uuid=uuid, address=address, minor=minor, excluded=excluded)
    (folder / "information").write_text(text)


def add_instance(root: Path, minor: int, gpu_instance: int) -> None:
    (root / f"proc/driver/nvidia/capabilities/gpu{minor}/mig/gi{gpu_instance}").mkdir(parents=True)
