"""Links, NVSwitches and CPUs as the hostengine has them, at their own slow pace."""

import dataclasses
import itertools
import logging
import shutil
import subprocess

import pytest

from exporter.model import Entity, Fabric, LinkState, Part, PartKind, PartReading
from exporter.sources.dcgm.bindings import Bindings
from tests.abi.dcgm.codes import Blank, Code
from tests.abi.dcgm.codes import LinkState as Raw
from tests.abi.dcgm.happenings import failing
from tests.abi.dcgm.scenario import Cpu, Links, Switch
from tests.abi.dcgm.values import Events, Value, Window, steps

from .conftest import Drive
from .driving import SHIFT, Driver
from .nodes import board, gpu, node
from .observing import Observer

SWITCH, GRACE = Part(PartKind.NVSWITCH, 2), Part(PartKind.CPU, 0)
RAILS: dict[int, Value] = {705: 40.0, 706: 25.0, 707: 10.0}
CPU: dict[int, Value] = {1100: 0.25, 1110: 55.5, 1130: 120.0, 1131: 300.0, 1133: 700.0}


def nvswitch(**fields: Value) -> Switch:
    extra = {int(name.removeprefix("f")): value for name, value in fields.items()}
    return Switch(2, {858: 48.0, **RAILS, **extra}, links=(Links((Raw.UP, Raw.UP, Raw.DOWN, Raw.DISABLED)),))


def looks(driver: Driver, end: float) -> list[Fabric]:
    return [batch.fabric for batch in driver.run(0.0, end) if batch.fabric is not None]


def current(look: Fabric, part: Part) -> dict[tuple[str, str], float]:
    return {(r.field, r.label): r.value for r in look.readings if r.part == part}


def sxids(seen: list[Fabric]) -> list[tuple[float, str, str]]:
    """When, in scenario time, which field and code."""
    readings: list[PartReading] = [r for look in seen for r in look.readings if r.field.endswith("sxid")]
    return [(round(r.end - SHIFT), r.field, r.label) for r in readings]


RELEASES = {"3": (3, 3, 9), "4.0-4.5": (4, 5, 3), "4.6+": (4, 6, 0)}
"""Of a library that takes the bindings' struct of link states."""


def test_switches_and_cpus_are_looked_at_every_five_seconds(drive: Drive) -> None:
    driver = drive(node(gpu(), switches=(nvswitch(),), cpus=(Cpu(0, CPU),), cpu_code=None))
    seen = looks(driver, 12.0)
    assert [round(look.end - SHIFT) for look in seen] == [0, 5, 10]
    last = seen[-1]
    assert set(last.parts) == {SWITCH, GRACE}
    rails = {("nvswitch_power", "vdd"): 40.0, ("nvswitch_power", "dvdd"): 25.0, ("nvswitch_power", "hvdd"): 10.0}
    assert current(last, SWITCH) == {("nvswitch_temperature", ""): 48.0, **rails}
    assert current(last, GRACE) == {
        ("cpu_utilization", ""): 0.25,
        ("cpu_temperature", ""): 55.5,
        ("cpu_power", ""): 120.0,
        ("cpu_power_limit", ""): 300.0,
        ("cpu_module_power", ""): 700.0,
    }
    assert driver.report.called("dcgmEntitiesGetLatestValues") <= 20  # it is no call a second


def test_a_value_that_is_sampled_no_more_is_not_carried_on(drive: Drive) -> None:
    once = Events(((1.0, 48.0), (4.0, 49.0)))
    seen = looks(drive(node(gpu(), switches=(nvswitch(f858=once),))), 40.0)
    temperature = ("nvswitch_temperature", "")
    assert current(seen[1], SWITCH)[temperature] == 49.0
    assert temperature not in current(seen[-1], SWITCH)
    assert ("nvswitch_power", "vdd") in current(seen[-1], SWITCH)


def test_a_mean_covers_what_was_sampled_and_no_more(drive: Drive) -> None:
    driver = drive(node(gpu(), cpus=(Cpu(0, CPU),), cpu_code=None))
    means = [r for look in looks(driver, 60.0) for r in look.readings if r.field == "cpu_utilization"]
    assert len(means) >= 11
    assert all(0.0 < r.end - (r.start or r.end) <= 4.5 + 1e-6 for r in means)
    assert all(a.end <= (b.start or 0.0) + 1e-6 for a, b in itertools.pairwise(means))


def test_link_states_of_gpus_and_switches(drive: Drive, bindings: Bindings) -> None:
    down = dataclasses.replace(gpu(), links=(Links((Raw.UP, Raw.UP)), Links((Raw.UP, Raw.DOWN), start=7.0)))
    release = RELEASES[bindings.version]
    driver = drive(node(down, gpu(1, links=()), switches=(nvswitch(),), version=release))
    seen = looks(driver, 10.0)
    up, off = LinkState.UP, LinkState.DOWN
    assert seen[0].links == {
        board(0): {0: up, 1: up},
        SWITCH: {0: up, 1: up, 2: off, 3: LinkState.DISABLED},
    }
    assert seen[-1].links[Entity(board(0).uuid)] == {0: up, 1: off}
    assert driver.report.called("dcgmGetNvLinkLinkStatus") == 3


def test_sxid_errors_count_when_they_appear(drive: Drive) -> None:
    """A fatal one is sampled for as long as it stands; one that is not keeps the time it happened at."""
    fatal = steps((0.0, Blank.UNSET), (7.0, 20034.0), (22.0, Blank.UNSET), (27.0, 20034.0))
    happened = Events(((12.0, 12028.0), (18.0, 12028.0)))
    driver = drive(node(gpu(), switches=(nvswitch(f856=fatal, f857=happened),)))
    assert sxids(looks(driver, 40.0)) == [
        (10, "nvswitch_fatal_sxid", "20034"),
        (15, "nvswitch_non_fatal_sxid", "12028"),
        (20, "nvswitch_non_fatal_sxid", "12028"),
        (30, "nvswitch_fatal_sxid", "20034"),
    ]


def test_a_fatal_error_that_stands_is_told_once_over_connections(drive: Drive) -> None:
    driver = drive(node(gpu(), switches=(nvswitch(f856=20034.0),), gone=(Window(20.0, 30.0),)))
    seen = looks(driver, 15.0)
    with pytest.raises(Exception, match="hostengine"):
        driver.read(25.0)
    seen += [batch.fabric for batch in driver.run(31.0, 50.0) if batch.fabric is not None]
    assert sxids(seen) == [(0, "nvswitch_fatal_sxid", "20034")]
    assert current(seen[-1], SWITCH)["nvswitch_temperature", ""] == 48.0


def test_switches_that_come_later_are_found(drive: Drive) -> None:
    late = dataclasses.replace(nvswitch(), present=(Window(30.0),))
    seen = looks(drive(node(gpu(), switches=(late,))), 80.0)
    assert seen[0].parts == []
    assert seen[-1].parts == [SWITCH]
    assert current(seen[-1], SWITCH)["nvswitch_temperature", ""] == 48.0


@pytest.mark.parametrize("version", [(3, 3, 9), (4, 5, 3), (4, 6, 0)])
def test_a_hostengine_without_any_of_it(
    drive: Drive, caplog: pytest.LogCaptureFixture, version: tuple[int, int, int]
) -> None:
    """No CPUs (the module cannot be loaded), no switches: absent, asked for seldom, and nothing is said."""
    with caplog.at_level(logging.INFO):
        driver = drive(node(gpu(links=()), version=version))
        seen = looks(driver, 120.0)
    assert all(not look.parts and not look.readings and not look.links for look in seen)
    assert driver.report.called("dcgmGetEntityGroupEntities") == 3 + 1  # switches each minute, CPUs once
    assert [record.message for record in caplog.records if "connected to" not in record.message] == []
    assert not [problem for problem in driver.batches[-1].problems if "different releases" not in problem.what]


def test_a_switch_that_no_group_takes_costs_nothing_else(drive: Drive) -> None:
    refused = (failing("dcgmEntitiesGetLatestValues", Code.GENERIC_ERROR, start=4.0, end=11.0),)
    driver = drive(node(gpu(), switches=(nvswitch(),), call_faults=refused))
    seen = looks(driver, 12.0)
    assert current(seen[0], SWITCH)
    assert not seen[-1].parts
    assert any(reading.field == "sm" and reading.value for batch in driver.batches[-2:] for reading in batch.readings)
    later = [batch.fabric for batch in driver.run(611.0, 640.0) if batch.fabric is not None]
    assert current(later[-1], SWITCH)


def test_blanks_are_no_values(drive: Drive) -> None:
    fields: dict[int, Value] = {858: Blank.NOT_SUPPORTED, 705: Blank.UNSET, 706: 25.0}
    (look, *_) = looks(drive(node(gpu(), switches=(Switch(2, fields),))), 0.0)
    assert current(look, SWITCH) == {("nvswitch_power", "dvdd"): 25.0}


def test_what_is_served(drive: Drive, bindings: Bindings) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed (Debian package prometheus)")
    scenario = node(gpu(), switches=(nvswitch(f856=20034.0),), cpus=(Cpu(0, CPU),), cpu_code=None)
    page = Observer(drive(dataclasses.replace(scenario, version=RELEASES[bindings.version]))).served(12.0)
    for line in (
        'nvlink_link_up{gpu="0",uuid="GPU-00000000-0e57-4c0d-9a5e-000000000000",link="17"} 0.0',
        'nvswitch_links{nvswitch="2",state="up"} 2.0',
        'nvswitch_sxid_errors_total{nvswitch="2",severity="fatal",sxid="20034"} 1.0',
        'nvswitch_power_watts{nvswitch="2",rail="hvdd"} 10.0',
        'cpu_utilization_ratio{cpu="0"} 0.25',
        'cpu_power_watts{cpu="0"} 120.0',
    ):
        assert f"honest_gpu_{line}" in page.splitlines()
    checked = subprocess.run([promtool, "check", "metrics"], input=page.encode(), capture_output=True, check=False)
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, b"", b"")


def test_nothing_stays_open(drive: Drive) -> None:
    driver = drive(node(gpu(), switches=(nvswitch(),), cpus=(Cpu(0, CPU),), cpu_code=None))
    looks(driver, 6.0)
    driver.source.close()
    report = driver.report
    assert (report.open_groups, report.open_field_groups, report.open_watches, report.open_handles) == (0, 0, 0, 0)
