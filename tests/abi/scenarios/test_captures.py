"""The machines of nodes.py are those of the captures."""

import re
from xml.etree import ElementTree

import pytest

from tests.data import capture

from ..nvml.build import player_library
from ..nvml.scenario import MIB, Gpu, Scenario, Value
from .nodes import a100_mig_node, b200_node, h100_mig_node, h100_node, p100_node, t4_node, v100_node

REPORTS = [
    ("qx-h100.xml", h100_node()),
    ("qx-b200.xml", b200_node()),
    ("qx-t4.xml", t4_node()),
    ("a100-sxm4-v12.xml", a100_mig_node()),
]


def number(text: str | None) -> float:
    found = re.match(r"-?[\d.]+", text or "")
    return float(found[0]) if found else -1.0


def of_board(board: ElementTree.Element) -> dict[str, object]:
    def text(path: str) -> str | None:
        return board.findtext(path)

    power = text("gpu_power_readings/average_power_draw") or text("gpu_power_readings/power_draw")
    if power in (None, "N/A"):
        power = text("gpu_power_readings/instant_power_draw")
    return {
        "name": text("product_name"),
        "pci": text("pci/pci_bus_id"),
        "device": int(text("pci/pci_device_id") or "", 16),
        "minor": number(text("minor_number")),
        "link": [
            number(text(f"pci/pci_gpu_link_info/{path}"))
            for path in (
                "pcie_gen/current_link_gen",
                "pcie_gen/max_link_gen",
                "link_widths/current_link_width",
                "link_widths/max_link_width",
            )
        ],
        "memory": [number(text(f"fb_memory_usage/{part}")) for part in ("total", "used", "reserved")],
        "clocks": [number(text(f"clocks/{kind}_clock")) for kind in ("graphics", "sm", "mem", "video")],
        "clocks_max": [number(text(f"max_clocks/{kind}_clock")) for kind in ("graphics", "sm", "mem", "video")],
        "power_mw": [round(number(power) * 1000)]
        + [
            number(text(f"gpu_power_readings/{limit}_power_limit")) * 1000
            for limit in ("current", "default", "min", "max")
        ],
        "temperatures": [number(text("temperature/gpu_temp")), number(text("temperature/memory_temp"))],
        "persistence": text("persistence_mode") == "Enabled",
        "instances": [
            [
                number(device.findtext("gpu_instance_id")),
                number(device.findtext("device_attributes/shared/multiprocessor_count")),
                number(device.findtext("fb_memory_usage/total")),
            ]
            for device in board.findall("mig_devices/mig_device")
        ],
    }


def plain(value: Value | None) -> float:
    if value is None:
        return -1.0
    assert isinstance(value, float | int)
    return value


def of_gpu(gpu: Gpu) -> dict[str, object]:
    pcie, power = gpu.pcie, gpu.power
    assert pcie is not None
    instances = gpu.mig.instances if gpu.mig is not None else ()
    return {
        "name": gpu.name,
        "pci": gpu.pci_bus_id,
        "device": gpu.pci_device_id,
        "minor": gpu.minor,
        "link": [plain(item) for item in (pcie.generation, pcie.generation_max, pcie.width, pcie.width_max)],
        "memory": [plain(item) / MIB for item in (gpu.memory.total, gpu.memory.used, gpu.memory.reserved)],
        "clocks": [plain(getattr(gpu.clocks, kind)) for kind in ("graphics", "sm", "memory", "video")],
        "clocks_max": [plain(getattr(gpu.clocks_max, kind)) for kind in ("graphics", "sm", "memory", "video")],
        "power_mw": [
            plain(item) for item in (power.draw_mw, power.limit_mw, power.limit_mw, power.min_mw, power.max_mw)
        ],
        "temperatures": [plain(gpu.temperature), plain(gpu.memory_temperature)],
        "persistence": bool(gpu.persistence_mode),
        "instances": [[item.id, item.computes[0].sm_count, item.memory_mib] for item in instances],
    }


@pytest.mark.parametrize(("name", "scenario"), REPORTS, ids=[name for name, _ in REPORTS])
def test_nodes_are_as_captured(name: str, scenario: Scenario) -> None:
    root = ElementTree.parse(capture(f"nvidia_smi/{name}")).getroot()
    boards = root.findall("gpu")
    assert root.findtext("driver_version") == scenario.driver_version
    assert len(boards) == len(scenario.gpus)
    for board, gpu in zip(boards, scenario.gpus, strict=True):
        assert of_gpu(gpu) == of_board(board)


def test_the_mig_layout_is_as_captured() -> None:
    text = capture("nvidia_smi/h100_mig_idle_and_load.txt").read_text()
    query = text[text.index("idle :: query (-q)") :]
    query = query[: query.index("Accounting Mode")]

    def all_of(label: str) -> list[int]:
        return [int(found) for found in re.findall(rf"{label} +: (\d+)", query)]

    gpu = h100_mig_node().gpus[0]
    assert gpu.mig is not None
    parts = gpu.mig.instances
    assert [part.id for part in parts] == all_of("GPU Instance ID")
    assert [part.computes[0].sm_count for part in parts] == all_of("Multiprocessor count")
    assert [part.copy_engines for part in parts] == all_of("Copy Engine count")
    assert [part.decoders for part in parts] == all_of("Decoder count")
    assert [part.jpegs for part in parts] == all_of("JPG count")
    totals = re.findall(r"Shared FB Memory Usage\n +Total +: (\d+)", query)
    assert [part.memory_mib for part in parts] == [int(total) for total in totals]


def test_the_player_exports_only_what_a_real_driver_exports() -> None:
    text = capture("nvidia_smi/h100_idle_and_load.txt").read_text()
    real = set(re.findall(r"^(nvml\w+)$", text[text.index(":: nvml-symbols") :], re.MULTILINE))
    library = (player_library() / "libnvidia-ml.so.1").read_bytes()
    found = re.findall(rb"\0(nvml[A-Z]\w+)(?=\0)", library)
    ours = {name.decode() for name in found if not name.endswith(b"_t")}
    assert len(ours) > 90
    assert ours - real == set()


@pytest.mark.parametrize(
    ("name", "gpu"), [("Tesla_P100-PCIE-16GB", p100_node().gpus[0]), ("Tesla_V100-SXM2-16GB", v100_node().gpus[0])]
)
def test_fields_that_a_model_lacks(name: str, gpu: Gpu) -> None:
    text = capture(f"dcgm_exporter/field_support/{name}.yaml").read_text()
    lacking = text.partition("unsupported_fields:")[2]
    assert ("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION" in lacking) == (gpu.energy_mj is None)
    assert ("DCGM_FI_DEV_RELIABILITY_VIOLATION" in lacking) == (5 not in gpu.violations_ns)
    assert ("DCGM_FI_PROF_NVLINK_RX_BYTES" in lacking) == (gpu.nvlink is None)
    assert gpu.name in text
