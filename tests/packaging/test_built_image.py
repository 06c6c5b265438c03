"""The images as built: the same twice, run by nobody on a read-only root without a shell; DCGM's by a stand-in."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from exporter.version import VERSION
from tests.abi.dcgm import samples
from tests.abi.dcgm.bindings import need_bindings
from tests.abi.dcgm.build import player_library
from tests.abi.dcgm.playing import play
from tests.end_to_end.processes import fetch, free_port, parse, pick, wait_for
from tests.packaging import images, nvidia_packages
from tests.packaging.node import Mount, Order
from tests.packaging.runtimes import ENTRYPOINT, IMAGE_VARIABLE, Podman, Running

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("image")]

NOBODY = 65534
SHELLS = ("/usr/bin/dash", "/usr/bin/bash")  # sh is the first


def order(*arguments: str, **more: Any) -> Order:
    """As the chart's default: nobody, nothing may be written, no capability."""
    port = free_port()
    walls: dict[str, Any] = {
        "arguments": (f"--web.listen-address=127.0.0.1:{port}", "--sampling.interval=200ms", *arguments),
        "environment": {"HEALTHCHECK_URL": f"http://127.0.0.1:{port}/-/healthy"},
        "mounts": (),
        "user": NOBODY,
        "group": NOBODY,
        "read_only_root": True,
        "dropped": ("ALL",),
        "added": (),
        "may_gain_privileges": False,
        "host_pid": False,
        "port": port,
    }
    return Order(**{**walls, **more})


@dataclass(frozen=True)
class Scraped:
    """A container that runs, and what it serves."""

    running: Running
    port: int

    def series(self) -> Mapping[str, float]:
        if self.running.gone():
            pytest.fail(f"ended: {self.running.log}")
        return parse(fetch(f"http://127.0.0.1:{self.port}/metrics"))

    def measures(self, name: str = "honest_gpu_sm_active_ratio", **labels: str) -> bool:
        return pick(self.series(), name, **labels) is not None


@pytest.fixture(scope="module")
def dcgm_image(builds_images: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The target dcgm from the stand-in's packages."""
    del builds_images
    reason = nvidia_packages.missing()
    if reason:
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("nvidia")
    with nvidia_packages.served(folder, player_library()) as repository:
        name = images.build("dcgm", "test-dcgm", repository.arguments(), {"no_proxy": "127.0.0.1"})
    yield name
    images.remove(name)


def test_the_image_says_who_it_is(image: str) -> None:
    config = images.inspect(image)["Config"]
    assert config["User"] == f"{NOBODY}:{NOBODY}"
    assert config["Entrypoint"] == [ENTRYPOINT]
    assert config["Labels"]["org.opencontainers.image.version"] == VERSION
    assert config["ExposedPorts"].keys() == {"9836/tcp"}
    assert "NVIDIA_DRIVER_CAPABILITIES=utility" in config["Env"]


def test_two_builds_have_the_same_layers(builds_images: None, image: str) -> None:
    """Every file, owner and date. The image's own sum differs: podman writes random names into its history."""
    del builds_images
    if IMAGE_VARIABLE in os.environ:
        pytest.skip(f"{IMAGE_VARIABLE} names an image that was built elsewhere")
    again = images.build("slim", "test-again")
    try:
        assert images.inspect(again)["RootFS"]["Layers"] == images.inspect(image)["RootFS"]["Layers"]
    finally:
        images.remove(again)


def test_it_runs_and_knows_its_health_without_a_shell(image: str) -> None:
    hidden = tuple(Mount(Path("/dev/null"), shell, True) for shell in SHELLS)
    wanted = order("--source=simulated", "--source.gpus=2", mounts=hidden)
    runtime = Podman(image)
    with runtime.run(wanted) as running:
        scraped = Scraped(running, wanted.port)
        wait_for(functools.partial(scraped.measures, gpu="1"), "a measurement")
        assert runtime.health(running) == (0, "")
        assert runtime.execute(running, "/bin/sh", "-c", "true").returncode != 0
        assert running.status("Uid").split() == [str(NOBODY)] * 4
        assert running.root_is_read_only()


def test_its_health_is_bad_when_nothing_answers(image: str) -> None:
    elsewhere = {"HEALTHCHECK_URL": f"http://127.0.0.1:{free_port()}/-/healthy"}
    wanted = order("--source=simulated", environment=elsewhere)
    runtime = Podman(image)
    with runtime.run(wanted) as running:
        wait_for(functools.partial(Scraped(running, wanted.port).measures, gpu="0"), "a measurement")
        assert runtime.health(running)[0] == 1


@pytest.mark.parametrize("address", ["localhost:5555", "embedded"])
def test_dcgm_is_found_where_its_packages_put_it(dcgm_image: str, address: str, tmp_path: Path) -> None:
    need_bindings()
    playing = play(samples.one(samples.a100()), player_library(), tmp_path / "dcgm", real_time=True)
    for path in (tmp_path, tmp_path / "dcgm"):
        path.chmod(0o777)  # the player's report is written by nobody
    folder = Mount(tmp_path / "dcgm", str(tmp_path / "dcgm"), False)
    wanted = order(f"--dcgm.address={address}", mounts=(folder,), environment=playing.variables())
    with Podman(dcgm_image).run(wanted) as running:
        scraped = Scraped(running, wanted.port)
        wait_for(scraped.measures, "a measurement")
        assert pick(scraped.series(), "honest_gpu_up", source="dcgm") == 1
        assert running.status("Uid").split() == [str(NOBODY)] * 4
        assert running.root_is_read_only()
