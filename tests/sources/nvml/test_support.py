"""Why a GPU has no measurement from the driver, and what the person on call is told to do; the probe says the same."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.abi.nvml.build import player_library
from tests.abi.nvml.codes import Architecture, Brand, Code
from tests.abi.nvml.happenings import failing, hanging
from tests.abi.nvml.meeting import h100, one
from tests.abi.nvml.scenario import Scenario
from tests.abi.scenarios.models import a100_sxm_80gb, rtx_4090
from tests.abi.scenarios.nodes import a100_mig_node, h100_mig_node, h100_node, l4_node, mixed_node, p100_node, t4_node
from tests.sources.nvml.conftest import Drive
from tests.sources.nvml.driving import drive

READS = "source = make(); result = reads(source, 0, 1, 2, 3)"
PROBE = """
from dataclasses import asdict
from exporter.sources.nvml.probe import probe
def look(**options):
    try:
        return asdict(probe(**options))
    except SourceError as error:
        return {"error": str(error), "remedy": error.remedy}
result = look(deadline=0.3)
"""
BLACKWELL_GEFORCE = replace(
    rtx_4090(), architecture=Architecture.BLACKWELL, brand=Brand.GEFORCE, name="NVIDIA GeForce RTX 5090"
)


@pytest.mark.parametrize(
    ("scenario", "why", "remedy"),
    [
        (Scenario((rtx_4090(),)), "GeForce has none before Blackwell", "nothing on this GPU"),
        (p100_node(), "begin with Volta", "nothing on this GPU"),
        (Scenario((a100_sxm_80gb(),)), "begins with Hopper", "--dcgm.address"),
        (t4_node(), "begins with Hopper", "--dcgm.address"),
        (l4_node(), "begins with Hopper", "--dcgm.address"),
        (a100_mig_node(), "begins with Hopper", "--dcgm.address"),
        (Scenario((BLACKWELL_GEFORCE,)), "the driver says that NVIDIA GeForce RTX 5090 has no GPM", "vGPU"),
        (one(h100(gpm_supported=0.0)), "the driver says that NVIDIA H100 80GB HBM3 has no GPM", "vGPU"),
    ],
    ids=["rtx 4090", "p100", "a100", "t4", "l4", "a100 mig", "rtx 5090", "h100 guest"],
)
def test_gpus_without_gpm(driven: Drive, scenario: Scenario, why: str, remedy: str) -> None:
    last = driven(scenario, READS).result[-1]
    ((what, said, do),) = last["problems"]
    assert "no profiling data" in what
    assert why in said
    assert remedy in do
    assert last["absent"][f"{scenario.gpus[0].uuid} pcie_receive"] == "not_supported"
    (gpu,) = driven(scenario, PROBE).result["gpus"]
    assert (gpu["gpm"], gpu["without_gpm"], gpu["remedy"]) == (False, said, do)


@pytest.mark.parametrize(("gpu", "why"), [(h100(), "too old for GPM"), (a100_sxm_80gb(), "begins with Hopper")])
def test_a_driver_without_the_function(tmp_path: Path, gpu: object, why: str) -> None:
    library = player_library(frozenset({"nvmlGpmQueryDeviceSupport"}))
    last = drive(Scenario((gpu,)), library, tmp_path / "old", READS).result[-1]  # type: ignore[arg-type]
    ((_, said, remedy),) = last["problems"]
    assert why in said
    assert ("update the NVIDIA driver" in remedy) == (why == "too old for GPM")


def test_a_driver_that_speaks_an_older_form(driven: Drive) -> None:
    scenario = replace(h100_node(1), faults=(failing("nvmlGpmQueryDeviceSupport", Code.ARGUMENT_VERSION_MISMATCH),))
    ((_, said, _),) = driven(scenario, READS).result[-1]["problems"]
    assert "the driver 580.105.08 is too old for GPM" in said


def test_a_refusal(driven: Drive) -> None:
    scenario = replace(h100_node(1), faults=(failing("nvmlGpmQueryDeviceSupport", Code.NO_PERMISSION),))
    last = driven(scenario, READS).result[-1]
    ((_, said, remedy),) = last["problems"]
    assert "refuses" in said
    assert "NVreg_RestrictProfilingToAdminUsers" in remedy
    assert last["absent"][f"{scenario.gpus[0].uuid} sm"] == "not_permitted"


def test_an_answer_that_fails_for_once_is_asked_for_again(driven: Drive) -> None:
    scenario = replace(h100_node(1), faults=(failing("nvmlGpmQueryDeviceSupport", Code.UNKNOWN, end=1),))
    found = driven(scenario, READS).result
    uuid = scenario.gpus[0].uuid
    assert found[0]["absent"][f"{uuid} sm"] == "error"  # waiting helps: not given up
    assert "does not say" in found[0]["problems"][0][1]
    assert found[-1]["values"][f"{uuid} sm"] == 0.0
    assert not found[-1]["problems"]


def test_gpm_that_is_switched_off_is_no_problem(driven: Drive) -> None:
    *_, last = driven(h100_node(1), "source = make(gpm=False); result = reads(source, 0, 1, 2)").result
    assert not last["problems"]
    assert last["absent"][f"{h100_node(1).gpus[0].uuid} sm"] == "not_configured"


def test_the_probe_of_a_mixed_node(driven: Drive) -> None:
    found = driven(mixed_node(), PROBE)
    gpus = found.result["gpus"]
    assert [(gpu["gpm"], gpu["mig"]) for gpu in gpus] == [
        (True, False),
        (True, True),
        (False, False),
        (False, False),
        (False, False),
    ]
    assert found.result["driver_version"] == mixed_node().driver_version
    assert not any(gpu["problem"] for gpu in gpus)
    assert found.playing.report().init_count == 0


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (failing("*", Code.GPU_IS_LOST, gpu="gpu1"), "fallen off the bus"),
        (hanging("nvmlDeviceGetHandleByIndex*", gpu="gpu1"), "has not returned"),
        (failing("nvmlDeviceGetHandleByIndex*", Code.NO_PERMISSION, gpu="gpu1"), "refuses"),
    ],
)
def test_the_probe_of_a_gpu_that_fails(driven: Drive, fault: object, said: str) -> None:
    good, bad = driven(replace(h100_node(2), faults=(fault,)), PROBE).result["gpus"]  # type: ignore[arg-type]
    assert good["gpm"] is True
    assert said in bad["problem"]
    assert bad["remedy"]


def test_the_probe_without_gpus_or_driver(driven: Drive) -> None:
    nothing = driven(Scenario(()), PROBE).result
    assert "lists no GPU" in nothing["error"]
    down = driven(replace(h100_mig_node(), faults=(failing("nvmlInit*", Code.DRIVER_NOT_LOADED),)), PROBE).result
    assert "not loaded" in down["error"]
    assert down["remedy"]
