"""Pages of real exporters, to the last value (tests/data/dcgm_exporter)."""

from __future__ import annotations

import pytest

from exporter.clock import VirtualClock
from exporter.core.pipeline import Pipeline
from exporter.model import Absence, Batch, Entity
from tests.sources.scrape.pages import Exporter, capture, devices, second, values

MIB = 1 << 20


def read(name: str) -> Batch:
    return second(capture(name))


def test_t4_under_load() -> None:
    batch = read("t4_under_load.prom")
    (device,) = batch.devices
    assert (device.index, device.model) == ("0", "Tesla T4")
    assert (device.pci_bus_id, device.driver_version) == ("00000000:37:00.0", "590.48.01")
    assert values(batch, Entity("GPU-f8132e94-0235-54c2-6e25-98f9cc06e10f")) == {
        "sm_clock": 660e6,
        "memory_clock": 5000e6,
        "memory_temperature": Absence.NOT_SUPPORTED,
        "temperature": 74.0,
        "power": 68.244,
        "energy": 15152422.938,
        "pcie_replay": 0.0,
        "busy": 0.91,
        "memory_busy": 0.73,
        "memory_free": 9791.0 * MIB,
        "memory_used": 5120.0 * MIB,
        "memory_reserved": 447.0 * MIB,
        "graphics_engine": 0.156205,
        "tensor": 0.005822,
        "dram": 0.092781,
        "pcie_transmit": 4791810.0,
        "pcie_receive": 6935930.0,
    }
    assert device.fields == values(batch, device.entity).keys()
    assert batch.rejected == {}


def test_t4_through_the_core() -> None:
    exporter, clock = Exporter(capture("t4_under_load.prom")), VirtualClock()
    pipeline = Pipeline(clock, 1.0)
    for _ in range(11):
        pipeline.absorb(exporter.read(clock.monotonic()))
        clock.advance(1.0)
    (view,) = pipeline.publish().entities
    assert view.honest is not None
    assert view.honest.utilization == pytest.approx(0.092781)
    assert view.totals.seconds["busy"] == pytest.approx(9.1)
    assert view.totals.observed["busy"] == pytest.approx(10.0)
    assert view.totals.amounts["pcie_receive"] == pytest.approx(69359300.0)
    assert view.totals.amounts["energy"] == 0.0  # the page stands still
    assert view.totals.parts["working"] == pytest.approx(0.92781)
    assert view.totals.parts["idle"] == pytest.approx(0.9)
    assert view.rejected == {}


def test_l40s() -> None:
    batch = read("l40s.prom")
    (device,) = batch.devices
    assert (device.model, device.driver_version) == ("NVIDIA L40S", "595.58.03")
    assert values(batch, Entity("GPU-e3a3728e-3f00-97c7-5398-d22daaede591")) == {
        "sm_clock": 210e6,
        "memory_clock": 405e6,
        "memory_temperature": Absence.NOT_SUPPORTED,
        "temperature": 32.0,
        "power": 35.686,
        "energy": 5551899.58,
        "pcie_replay": 0.0,
        "busy": 0.0,
        "memory_busy": 0.0,
        "memory_free": 45459.0 * MIB,
        "memory_used": 0.0,
        "memory_reserved": 608.0 * MIB,
        "remapped_rows_uncorrected": 0.0,
        "remapped_rows_corrected": 0.0,
        "remap_failed": 0.0,
        "graphics_engine": 0.0,
        "tensor": 0.0,
        "dram": 0.000131,
        "pcie_transmit": 175084.0,
        "pcie_receive": 19831.0,
    }
    assert batch.rejected == {}


def test_eight_h100_one_of_them_held_by_a_pod() -> None:
    batch = read("h100x8_pod_labels.prom")
    assert [device.index for device in batch.devices] == [*"01234567"]
    assert {device.model for device in batch.devices} == {"NVIDIA H100 80GB HBM3"}
    assert {device.driver_version for device in batch.devices} == {"580.105.08"}
    assert [device.pci_bus_id[9:11] for device in batch.devices] == ["53", "64", "75", "86", "97", "A8", "B9", "CA"]
    found = [values(batch, device.entity) for device in batch.devices]
    assert [each["temperature"] for each in found] == [30, 29, 26, 29, 28, 26, 28, 26]
    assert [each["power"] for each in found] == [113.611, 68.347, 65.709, 67.316, 68.717, 65.742, 67.328, 66.997]
    assert [each["busy"] for each in found] == [0.0] * 8
    assert [each.get("memory_busy") for each in found] == [0.0] * 6 + [None] * 2  # the capture ends there
    assert batch.devices[0].fields == {"temperature", "power", "busy", "memory_busy"}
    assert batch.devices[7].fields == {"temperature", "power", "busy"}
    assert batch.rejected == {}


def test_a_vgpu_without_profiling() -> None:
    batch = read("vgpu_a100_40c_no_profiling.prom")
    (device,) = batch.devices
    assert device.model == "GRID A100-40C"
    assert values(batch, device.entity) == {
        "sm_clock": 1410e6,
        "memory_clock": 1215e6,
        "memory_temperature": Absence.NOT_SUPPORTED,
        "busy": 0.0,
        "memory_busy": 0.0,
        "memory_free": 37739.0 * MIB,
        "memory_used": 0.0,
        "memory_reserved": 3220.0 * MIB,
    }
    assert [problem.what for problem in batch.problems] == ["SM active is not known"]


def test_one_busy_instance_with_rows_of_its_board() -> None:
    batch = read("a100_mig_1g5gb_dcgmproftester.prom")
    board = Entity("GPU-c1eeb50e-ed6b-edb1-c75d-667569c3af17")
    whole = Entity("GPU-9ea7fe8d-fb90-9bcb-5011-2aff05fc3963")
    instance = Entity(board.uuid, 13)
    assert [device.entity for device in batch.devices] == [whole, board, instance]
    assert values(batch, whole) == {
        "sm_clock": 139e6,
        "memory_clock": 405e6,
        "memory_temperature": Absence.NOT_SUPPORTED,  # 9223372036854775794
    }
    assert values(batch, board) == {
        "sm_clock": 1215e6,
        "memory_clock": 1215e6,
        "memory_temperature": 69.0,
        "temperature": 61.0,
        "power": 409.692,
        "energy": 319159.391,
        "pcie_replay": 0.0,
        "memory_free": 35690.0 * MIB,
        "memory_used": 4845.0 * MIB,
        "graphics_engine": 0.99563,
        "tensor": 0.92926,
        "dram": 0.690789,
        "pcie_transmit": 33011804.0,
        "pcie_receive": 97863601.0,
    }
    assert values(batch, instance) == {"graphics_engine": 0.995687, "tensor": 0.930433, "dram": 0.800339}
    found = devices(batch)
    assert found[instance].mig_profile == "1g.5gb"
    assert [entity for entity, device in found.items() if device.mig_enabled] == [board]
    assert "xid" in found[board].fields
    assert found[instance].fields == {"graphics_engine", "tensor", "dram"}


def test_one_active_instance_on_whose_rows_everything_is() -> None:
    batch = read("a100_mig_active_1g5gb.txt")
    board = Entity("GPU-91aef438-5ec7-0b4e-db92-99a0887d6846")
    assert values(batch, board) == {
        "sm_clock": 1410e6,
        "memory_clock": 1215e6,
        "memory_temperature": 39.0,
        "temperature": 37.0,
        "power": 115.294,
        "energy": 27151.028,
        "pcie_replay": 0.0,
    }
    assert values(batch, Entity(board.uuid, 9)) == {
        "memory_free": 480.0 * MIB,
        "memory_used": 4384.0 * MIB,
        "graphics_engine": 0.999892,  # its HELP says "in %"
        "tensor": 0.000118,
        "dram": 0.622646,
    }
    assert batch.rejected == {("line", "unparseable"): 1}  # the title


def test_four_instances() -> None:
    batch = read("a100_mig_4_instances.txt")
    board = Entity("GPU-13dee31e-e2b1-fb0d-9055-97bd3010ffb1")
    found = devices(batch)
    assert {entity.gpu_instance: device.mig_profile for entity, device in found.items()} == {
        None: "",
        7: "1g.5gb",
        8: "1g.5gb",
        9: "1g.5gb",
        5: "2g.10gb",
    }
    assert values(batch, board) == {
        "sm_clock": 1410e6,
        "memory_clock": 1215e6,
        "memory_temperature": 36.0,
        "temperature": 35.0,
        "power": 112.252,  # two rows say 106.463
        "energy": 6890.956,
        "pcie_replay": 0.0,
    }
    idle = {"memory_free": 4857.0 * MIB, "memory_used": 6.0 * MIB, "graphics_engine": 0.0, "tensor": 0.0, "dram": 0.0}
    assert values(batch, Entity(board.uuid, 7)) == values(batch, Entity(board.uuid, 9)) == idle
    assert values(batch, Entity(board.uuid, 5)) == {**idle, "memory_free": 9843.0 * MIB, "memory_used": 13.0 * MIB}
    assert values(batch, Entity(board.uuid, 8)) == {
        "memory_free": 480.0 * MIB,
        "memory_used": 4384.0 * MIB,
        "graphics_engine": 0.408493,
        "tensor": 0.000048,
        "dram": 0.250816,
    }
    assert batch.rejected == {("line", "unparseable"): 1}


def test_instances_through_the_core() -> None:
    exporter, clock = Exporter(capture("a100_mig_4_instances.txt")), VirtualClock()
    pipeline = Pipeline(clock, 1.0)
    for _ in range(3):
        pipeline.absorb(exporter.read(clock.monotonic()))
        clock.advance(1.0)
    views = {view.device.entity.gpu_instance: view for view in pipeline.publish().entities}
    assert views[8].honest is not None
    assert views[8].honest.utilization == pytest.approx(0.250816)
    assert views[8].claim == "graphics_engine"
    assert views[None].honest is None
    assert [gi for gi, view in views.items() if "power" in view.instants] == [None]
